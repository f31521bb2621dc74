package contend

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
)

func at(d time.Duration) clock.Reading { return clock.Reading{}.Earlier(-d) }

const ms = time.Millisecond

// waits is a call that is refused by reply, or waits behind others.
func waits(t *testing.T, p *Place, ttl time.Duration, reply call.Reply) (*Caller, *Asker) {
	t.Helper()
	c := p.NewCaller(0, want("n", ttl), false)
	s := c.Next(0)
	if s.Do == Send {
		s = c.Answered(reply, nil)
	}
	if s.Do != Listen {
		t.Fatal(s)
	}
	return c, s.Start
}

// A process that stands still hears nothing either. Only those are told that nobody answers who have waited for a TTL, and whose patience
// a command had.
func TestSilenceIsToldToThoseWhosePatienceACommandHad(t *testing.T) {
	t.Parallel()
	p := &Place{Table: NewTable()}
	p.Can.Hears = true
	silence := call.Reply{Err: call.ErrNoAnswer, Now: at(33 * ms)}
	short, a := waits(t, p, 100*ms, silence)
	long, _ := waits(t, p, 3*time.Second, silence)
	s := a.Next(at(40*ms).Awake(), nil)
	if s.Do != Send || s.For != driver.Recheck(100*ms) {
		t.Fatal(s)
	}
	silence.Now = at(10 * time.Second)
	if s = a.Answered(silence, false); s.Do != Again || len(short.Words()) != 1 || len(long.Words()) != 0 {
		t.Errorf("%+v, %d and %d words", s, len(short.Words()), len(long.Words()))
	}
	for ttl, does := range map[time.Duration]Do{100 * ms: Over, time.Second: Watch} { // a try was as patient, or is not yet
		if s = p.NewCaller(0, want("n", ttl), true).Next(0); s.Do != does {
			t.Errorf("a try with a TTL of %s: %+v", ttl, s)
		}
	}
	p.Can.Hears = false
	if first, next := p.round(time.Minute, 0), p.round(time.Minute, 1); first != polls*time.Second || next != 2*time.Second {
		t.Errorf("where the backend sends no messages, a round of %s, and after silence one of %s", first, next)
	}
}

func TestSilenceCountsFromTheLastAnswer(t *testing.T) {
	t.Parallel()
	p := &Place{Table: NewTable()}
	p.Can.Hears = true
	c, a := waits(t, p, 100*ms, call.Reply{Err: &driver.Held{}, Now: at(90 * ms)})
	for words, now := range []time.Duration{180 * ms, 190 * ms} {
		a.Next(at(90*ms).Awake(), nil)
		if a.Answered(call.Reply{Err: call.ErrNoAnswer, Now: at(now)}, false); len(c.Words()) != words {
			t.Errorf("%s: %d words", now, len(c.Words()))
		}
		a.Next(at(now).Awake(), nil) // a pause
	}
}

// What was granted without the service is for those who asked so. The service knows nothing of its token, so nobody asks with that.
func TestAGrantWithoutTheServiceThatSuitsNobodyIsReleased(t *testing.T) {
	t.Parallel()
	p := &Place{Table: NewTable()}
	p.Can.Hears = true
	p.Site.Watch = nobody{}
	held := call.Reply{Err: &driver.Held{}, Now: at(ms)}
	first, a := waits(t, p, time.Second, held)
	other := p.NewCaller(0, want("n", time.Second), false)
	other.Want.NoRenewal = true
	other.Next(0)
	asked := a.Next(at(ms).Awake(), nil).Claim
	first.Leave(nil)
	s := a.Answered(call.Reply{Grant: driver.Grant{Degraded: "token"}, Now: at(time.Second)}, false) // a TTL later
	if s.Do != Again || s.Behind != asked {
		t.Fatalf("%+v", s)
	}
	if s = a.Next(at(2*ms).Awake(), nil); s.Do != Again || s.Behind == asked || !s.Clean.Once {
		t.Errorf("%+v", s)
	}
	if s = a.Next(at(2*ms).Awake(), nil); s.Do != Send || s.Want != other.Want {
		t.Errorf("%+v", s)
	}
}

// nobody watches.
type nobody struct{}

func (nobody) Watch(*hold.Hold)                           {}
func (nobody) Set(*hold.Hold, clock.Awake, time.Duration) {}
func (nobody) Leave(*hold.Hold)                           {}

func TestAGrantThatSuitsNobodyWhoIsFirstGoesToTheNextWhomItSuits(t *testing.T) {
	t.Parallel()
	p := &Place{Table: NewTable()}
	p.Can.Hears = true
	p.Site.Watch = nobody{}
	held := call.Reply{Err: &driver.Held{}, Now: at(ms)}
	first, a := waits(t, p, time.Second, held)
	var others []*Caller
	for i := range 3 {
		c := p.NewCaller(0, want("n", time.Second), false)
		c.Want.NoRenewal = i != 1
		c.Next(0)
		others = append(others, c)
	}
	grant := call.Reply{Now: at(2 * ms)}
	for _, leaves := range []*Caller{first, others[0]} {
		if s := a.Next(at(ms).Awake(), nil); s.Do != Send || s.Want != leaves.Want {
			t.Fatalf("%+v", s)
		}
		leaves.Leave(nil)
		a.Answered(grant, false)
	}
	if len(others[1].Words()) != 0 || len(others[2].Words()) != 1 {
		t.Errorf("%d and %d words", len(others[1].Words()), len(others[2].Words()))
	}
}

func TestAGrantThatSuitsNobodyAgainIsReleased(t *testing.T) {
	t.Parallel()
	p := &Place{Table: NewTable()}
	p.Can.Hears = true
	p.Site.Watch = nobody{}
	first, a := waits(t, p, time.Second, call.Reply{Err: &driver.Held{}, Now: at(ms)})
	var others []*Caller
	for i := range 2 {
		c := p.NewCaller(0, want("n", time.Second), false)
		c.Want.NoRenewal = i == 0
		c.Next(0)
		others = append(others, c)
	}
	var s Step
	for _, leaves := range []*Caller{first, others[0]} {
		asked := a.Next(at(ms).Awake(), nil).Claim
		leaves.Leave(nil)
		if s = a.Answered(call.Reply{Now: at(2 * ms)}, false); (s.Behind == asked) != (leaves != first) {
			t.Fatalf("%+v", s)
		}
	}
	if s = a.Next(at(2*ms).Awake(), nil); s.Do != Send || s.Want != others[1].Want {
		t.Errorf("%+v", s)
	}
}
