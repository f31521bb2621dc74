//go:build unix

package faultproxy

import "testing"

func TestACutReplyEndsItsConnectionAndNoOther(t *testing.T) {
	t.Parallel()
	s, p, c := begin(t, echo)
	other := dial(t, p.Addr())
	other.roundTrip("before")
	p.CutReply(2)
	c.roundTrip("first")
	c.send("second")
	s.wantNothingBut(t, "before", "first", "second")
	c.wantReset()
	other.roundTrip("after")
	dial(t, p.Addr()).roundTrip("on a new connection")
}

func TestACutRequestNeverArrives(t *testing.T) {
	t.Parallel()
	s, p, c := begin(t, echo)
	p.CutRequest(2)
	c.roundTrip("first")
	c.send("second")
	c.wantReset()
	s.wantNothingBut(t, "first")
	dial(t, p.Addr()).roundTrip("on a new connection")
}
