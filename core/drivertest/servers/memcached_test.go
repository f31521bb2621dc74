package servers

import "testing"

func TestMemcachedAnswers(t *testing.T) {
	t.Parallel()
	s := Memcached(t)
	c := dial(t, s.Addr())
	c.do("set k 0 0 1\r\nv", "STORED")
	c.do("get k", "VALUE k 0 1", "v", "END")
}

func TestMemcachedForgetsOverARestart(t *testing.T) {
	t.Parallel()
	s := Memcached(t)
	dial(t, s.Addr()).do("set k 0 0 1\r\nv", "STORED")
	s.Kill()
	wantRefused(t, s.Addr())
	s.Restart()
	dial(t, s.Addr()).do("get k", "END")
}
