//go:build unix

package faultproxy

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDelayIsAddedToEachDirection(t *testing.T) {
	t.Parallel()
	const there, back = 50 * time.Millisecond, time.Second
	s, p, c := begin(t, echo)
	p.SetDelay(there, back)
	start := time.Now()
	c.send("hello")
	s.next(t)
	if took := time.Since(start); took < there || took > there+back {
		t.Errorf("the request took %v; want a little over %v", took, there)
	}
	c.want("hello")
	if took := time.Since(start); took < there+back {
		t.Errorf("the round trip took %v; want at least %v", took, there+back)
	}
}

func TestWhatIsSentOnOneConnectionOvertakesAnother(t *testing.T) {
	t.Parallel()
	const slow = time.Second
	s, p, first := begin(t, echo)
	second := dial(t, p.Addr())
	first.roundTrip("one")
	s.next(t)
	second.roundTrip("two")
	s.next(t)
	p.DelayEach(func(n int) (toServer, toClient time.Duration) {
		if n == 1 {
			return slow, 0
		}
		return 0, 0
	})
	start := time.Now()
	first.send("before")
	second.send("after")
	for i, want := range []string{"after", "before"} {
		if got := s.next(t); got != want {
			t.Errorf("line %d is %q; want %q", i, got, want)
		}
	}
	if took := time.Since(start); took < slow {
		t.Errorf("the slow one took %v; want at least %v", took, slow)
	}
}

func TestDropReplyLosesTheNthOnly(t *testing.T) {
	t.Parallel()
	_, p, c := begin(t, echo)
	other := dial(t, p.Addr())
	p.DropReply(2)
	c.roundTrip("1")
	other.send("2")
	other.wantNothing()
	c.roundTrip("3")
}

func TestLostReplyIsLostToItsEnd(t *testing.T) {
	t.Parallel()
	_, p, c := begin(t, func(line string) []string {
		time.Sleep(10 * time.Millisecond)
		return []string{line, " and", " more\n"}
	})
	p.DropReply(1)
	c.send("lost")
	c.wantNothing()
	var text string
	for began := time.Now(); time.Since(began) < soon && !strings.HasSuffix(text, "more"); {
		c.send("kept") // lost as well, if it comes before the end of the first reply: see Granularity
		part, _ := c.receive(quiet)
		text += part
	}
	if strings.ReplaceAll(text, " ", "") != "keptandmore" {
		t.Errorf("received %q", text)
	}
}

func TestABlackHolePassesNothingEitherWayAndWhoLostNothingOutlivesIt(t *testing.T) {
	t.Parallel()
	answerNow := make(chan struct{})
	s, p, asks := begin(t, func(line string) []string {
		if line == "asked before" {
			<-answerNow
		}
		return echo(line)
	})
	idle, busy, leaves := dial(t, p.Addr()), dial(t, p.Addr()), dial(t, p.Addr())
	for _, c := range []*client{idle, busy, leaves} {
		c.roundTrip("hello")
		s.next(t)
	}
	asks.send("asked before")
	s.next(t)
	p.BlackHole(true)
	inside := dial(t, p.Addr())
	inside.send("lost")
	busy.send("lost")
	_ = leaves.Close()
	close(answerNow)
	s.wantNothing(t)
	asks.wantNothing()
	inside.wantNothing()
	if len(s.ends) > 0 || s.accepted.Load() != 4 {
		t.Errorf("the server has heard of the end of %d connections, and has %d", len(s.ends), s.accepted.Load())
	}
	p.BlackHole(false)
	for _, c := range []*client{asks, inside, busy} {
		c.wantReset()
	}
	idle.roundTrip("still here")
	dial(t, p.Addr()).roundTrip("after")
}

func TestABlackHoleForNewConnectionsIsNoneForOpenOnes(t *testing.T) {
	t.Parallel()
	s, p, before := begin(t, echo)
	before.roundTrip("before")
	s.next(t)
	p.BlackHoleNew(true)
	late := dial(t, p.Addr())
	late.send("lost")
	s.wantNothing(t)
	before.roundTrip("still here")
	s.next(t)
	p.BlackHoleNew(false)
	late.wantReset()
	before.roundTrip("after")
	dial(t, p.Addr()).roundTrip("a new one")
}

func TestResetReachesBothEnds(t *testing.T) {
	t.Parallel()
	s, p, c := begin(t, echo)
	c.roundTrip("hello")
	p.Reset()
	c.wantReset()
	s.wantEnd(t, syscall.ECONNRESET)
	dial(t, p.Addr()).roundTrip("after")
}

func TestRefusedDialsFailWhileOpenConnectionsGoOn(t *testing.T) {
	t.Parallel()
	_, p, open := begin(t, echo)
	open.roundTrip("before")
	for range 20 { // the moment after the switch is the interesting one
		p.Refuse(true)
		if conn, err := net.DialTimeout("tcp", p.Addr(), soon); err == nil {
			_ = conn.Close()
			t.Fatal("a dial went through")
		} else if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial: %v; want connection refused", err)
		}
		open.roundTrip("meanwhile")
		p.Refuse(false)
		dial(t, p.Addr()).roundTrip("after")
	}
}

func TestHeldRequestArrivesAfterItsClientHasGoneWhateverIsAnsweredMeanwhile(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*client){
		"closed": func(c *client) { _ = c.Close() },
		"reset":  func(c *client) { reset(c.Conn) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answerNow := make(chan struct{})
			s, p, c := begin(t, func(line string) []string {
				if line == "held" {
					return nil
				}
				<-answerNow
				return []string{"one\n", "two\n"}
			})
			c.send("asked before")
			s.next(t)
			release := p.Hold()
			c.send("held")
			time.Sleep(quiet) // the proxy has read it
			leave(c)
			time.Sleep(quiet) // the proxy can no longer write
			close(answerNow)
			s.wantNothing(t)
			release()
			if got := s.next(t); got != "held" {
				t.Fatalf("the server got %q", got)
			}
			s.wantEnd(t, io.EOF)
		})
	}
}

func TestRepliesPassDuringAHoldAndHoldsAddUp(t *testing.T) {
	t.Parallel()
	answerNow := make(chan struct{})
	s, p, c := begin(t, func(line string) []string {
		<-answerNow
		return echo(line)
	})
	c.send("asked before")
	s.next(t)
	first, second := p.Hold(), p.Hold()
	close(answerNow)
	c.want("asked before")
	c.send("held")
	first()
	first()
	s.wantNothing(t)
	second()
	c.want("held")
}

func TestHealEndsEveryFault(t *testing.T) {
	t.Parallel()
	s, p, c := begin(t, echo)
	release := p.Hold()
	c.send("held")
	s.wantNothing(t)
	p.SetDelay(time.Hour, time.Hour)
	p.DelayEach(func(int) (toServer, toClient time.Duration) { return time.Hour, time.Hour })
	p.DropReply(1)
	p.CutReply(2)
	p.CutRequest(3)
	p.BlackHole(true)
	p.BlackHoleNew(true)
	p.Refuse(true)
	p.Heal()
	c.want("held")
	for range 3 {
		c.roundTrip("after")
	}
	dial(t, p.Addr()).roundTrip("a new one")

	defer p.Hold()()
	release() // of the hold that Heal has ended: no business of this one
	c.send("held again")
	s.wantNothingBut(t, "held", "after", "after", "after", "a new one")
}

func TestPipelinedRequestDoesNotSaveALostReply(t *testing.T) {
	t.Parallel()
	answerNow := make(chan struct{}, 2)
	s, p, c := begin(t, func(line string) []string {
		<-answerNow
		return echo(line)
	})
	p.DropReply(1)
	c.send("lost")
	s.next(t)
	c.send("kept")
	time.Sleep(quiet) // "kept" has been passed on before "lost" is answered
	answerNow <- struct{}{}
	c.wantNothing()
	answerNow <- struct{}{}
	s.next(t)
	c.wantNothing() // belongs to the same stretch of replies: see Granularity
	answerNow <- struct{}{}
	c.roundTrip("next")
}

func TestLostReplyIsLostHoweverLongItIsDelayed(t *testing.T) {
	t.Parallel()
	s, p, c := begin(t, echo)
	p.SetDelay(0, 100*time.Millisecond)
	p.DropReply(1)
	c.send("lost")
	s.next(t)
	time.Sleep(20 * time.Millisecond) // the reply is in the proxy by now
	c.send("kept")
	c.want("kept")
}

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
