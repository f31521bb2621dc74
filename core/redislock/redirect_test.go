package redislock

import "testing"

// answered is an error that a server answers.
type answered string

func (a answered) Error() string { return string(a) }
func (answered) RedisError()     {}

// Where to go, as the addresses of the client's nodes are written.
func TestARedirectionIsReadWithAddressesOfAnyKind(t *testing.T) {
	t.Parallel()
	for says, want := range map[answered]string{
		"MOVED 3999 127.0.0.1:6381": "127.0.0.1:6381", "ASK 3999 redis-1.example:6381": "redis-1.example:6381",
		"MOVED 3999 ::1:6381": "[::1]:6381", "ASK 3999 fd00::2:6381": "[fd00::2]:6381", "MOVED 3999 [::1]:6381": "[::1]:6381",
		"TRYAGAIN Multiple keys request during rehashing of slot": "",
	} {
		if got, _ := redirect(says); got != want {
			t.Errorf("%s: %q", says, got)
		}
	}
}
