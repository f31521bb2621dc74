package redislock

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

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

// As for a moment in a failover, when nodes do not agree.
func TestAClaimThatIsSentBackAndForthWasNotExecuted(t *testing.T) {
	t.Parallel()
	for what, opts := range map[string][]Option{"a master": nil, "replicas": {WithReplicas(1, time.Second)}} {
		var s *scripted
		s = serve(t, func(words []string) string {
			if words[0] == "evalsha" {
				_, port, _ := strings.Cut(s.addr, ":") // where its slots come from a function, the client knows its nodes by that
				return "-MOVED 12539 :" + port + "\r\n"
			}
			return "+OK\r\n"
		})
		store := New(s.cluster(t), append(opts, WithoutServerCheck())...)
		g, err := store.Acquire(t.Context(), driver.Claim{Name: "n", Token: "xxxxxxxxxxxxxxxxxxxxxx", TTL: time.Minute})
		if !says(err, "MOVED") || !errors.Is(err, driver.ErrNotSent) || g.Fence != 0 {
			t.Errorf("%s: %+v, %v", what, g, err)
		}
		if n := len(s.requests("evalsha")); n < 2 {
			t.Errorf("%s: sent %d times", what, n)
		}
	}
}
