//go:build unix

package faultproxy

import "testing"

func TestACutEndsItsConnectionAndNoOther(t *testing.T) {
	t.Parallel()
	for arrives, cut := range map[bool]func(*Proxy, int){true: (*Proxy).CutReply, false: (*Proxy).CutRequest} {
		s, p, c := begin(t, echo)
		other := dial(t, p.Addr())
		other.roundTrip("before")
		cut(p, 2)
		c.roundTrip("first")
		c.send("second")
		want := []string{"before", "first"}
		if arrives {
			want = append(want, "second")
		}
		c.wantReset()
		s.wantNothingBut(t, want...)
		other.roundTrip("after")
		dial(t, p.Addr()).roundTrip("on a new connection")
	}
}
