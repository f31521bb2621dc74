package contend

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
)

func at(d time.Duration) clock.Reading { return clock.Reading{}.Earlier(-d) }

const ms = time.Millisecond

// nobody watches.
type nobody struct{}

func (nobody) Watch(*hold.Hold)                           {}
func (nobody) Set(*hold.Hold, clock.Awake, time.Duration) {}
func (nobody) Leave(*hold.Hold)                           {}

// place is one whose backend sends messages.
func place() *Place {
	return &Place{Table: NewTable(), Site: hold.Site{Watch: nobody{}}, Can: driver.Capabilities{Hears: true}}
}

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

// others are calls that wait behind one another, renewed or not.
func others(p *Place, ttl time.Duration, fixed ...bool) (all []*Caller) {
	for i, f := range fixed {
		c := p.NewCaller(0, want("n", time.Duration(1+i)*ttl), false) // another TTL suits
		c.Want.NoRenewal = f
		c.Next(0)
		all = append(all, c)
	}
	return all
}

// A process that stands still hears nothing either. Only those are told that nobody answers who have waited for a TTL, and whose patience
// a command had.
func TestSilenceIsToldToThoseWhosePatienceACommandHad(t *testing.T) {
	t.Parallel()
	p := place()
	silence := call.Reply{Err: call.ErrNoAnswer, Now: at(33 * ms)}
	short, a := waits(t, p, 100*ms, silence)
	long, _ := waits(t, p, 3*time.Second, silence)
	if p.Table.Watch("n").Known {
		t.Error("a silence tells of a holder")
	}
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
	p := place()
	c, a := waits(t, p, 100*ms, call.Reply{Err: &driver.Held{}, Now: at(90 * ms)})
	if v := p.Table.Watch("n"); v.News.Held == nil || v.News.At != at(90*ms).Awake() {
		t.Errorf("who looks is not told of the answer: %+v", v)
	}
	for words, now := range []time.Duration{180 * ms, 190 * ms} {
		a.Next(at(90*ms).Awake(), nil)
		if a.Answered(call.Reply{Err: call.ErrNoAnswer, Now: at(now)}, false); len(c.Words()) != words {
			t.Errorf("%s: %d words", now, len(c.Words()))
		}
		a.Next(at(now).Awake(), nil) // a pause
	}
}

// Neither is the end of a round, which has told of its answer when that was new.
func TestWhatEndsOneWishIsToldToNobodyElse(t *testing.T) {
	t.Parallel()
	for what, ends := range map[string]error{"refused": driver.Refused(errors.New("denied")), "done before": &driver.Duplicate{}} {
		p := place()
		held := call.Reply{Err: &driver.Held{}, Now: at(ms)}
		first, a := waits(t, p, 100*ms, held)
		other, _ := waits(t, p, 100*ms, held)
		first.Want.Dedup, first.Want.Scope = time.Hour, "one"
		other.Want.Dedup, other.Want.Scope = time.Hour, "another"
		for i, outcome := range []error{held.Err, ends} {
			a.Next(at(ms).Awake(), nil)
			a.Answered(call.Reply{Err: outcome, Now: at(time.Duration(1+i) * time.Second)}, false)
		}
		alone := p.NewCaller(0, want("other", 100*ms), false)
		alone.Next(0)
		if s := alone.Answered(call.Reply{Err: ends}, nil); s.Do != Over || !errors.Is(s.Err, ends) {
			t.Errorf("%s: a call that asks for itself: %+v", what, s)
		}
		if v := p.Table.Watch("n"); len(first.Words()) != 1 || len(other.Words()) != 0 || v.News.Err != nil || v.News.At != at(ms).Awake() {
			t.Errorf("%s: %d and %d words, %+v", what, len(first.Words()), len(other.Words()), v)
		}
	}
}

// A try that has watched another's attempt takes its outcome, if that is its own too; otherwise it asks, for what is left of its time.
func TestATryTakesTheOutcomeOfAnAttemptThatItHasWatched(t *testing.T) {
	t.Parallel()
	const ttl, came = 300 * ms, 10 * ms
	patience := driver.Patience(ttl)
	denied, broken := driver.Refused(errors.New("denied")), errors.New("broken")
	for what, row := range map[string]struct {
		asked, answered time.Duration
		wish            func(w *hold.Want)
		within          time.Duration // if it may take less, since its own call came earlier
		err, gone       error
		takes           bool
	}{
		"an answer to what was sent since":    {asked: came + 1, answered: 20 * ms, err: denied, takes: true},
		"an answer to what was sent before":   {asked: came, answered: 20 * ms, err: denied},
		"an answer to another wish":           {asked: came + 1, answered: 20 * ms, err: denied, wish: func(w *hold.Want) { w.Label = "other" }},
		"silence":                             {asked: 0, answered: patience, err: broken, takes: true},
		"silence, and less patience":          {asked: came + 1, answered: patience / 2, err: broken, within: patience / 2},
		"silence from before it came":         {asked: 0, answered: came - 1, err: broken},
		"silence for a caller who has left":   {asked: 0, answered: patience, err: broken, gone: errors.New("gone")},
		"no word from a driver that panicked": {asked: came + 1, answered: 20 * ms, err: new(call.Panic)},
	} {
		p := place()
		other := p.NewCaller(0, want("n", ttl), true)
		if row.wish != nil {
			row.wish(other.Want)
		}
		other.Next(0)
		other.within = cmp.Or(row.within, patience)
		c := p.NewCaller(at(came).Awake(), want("n", ttl), true)
		if s := c.Next(at(came).Awake()); s.Do != Watch || s.For != patience {
			t.Fatalf("%s: %+v", what, s)
		}
		other.Answered(call.Reply{Err: row.err, Asked: at(row.asked), Now: at(row.answered)}, row.gone)
		now := at(row.answered).Awake()
		s := c.Next(now)
		if left := patience - now.Sub(at(came).Awake()); row.takes && !errors.Is(s.Err, row.err) || !row.takes && (s.Do != Send || s.For != left) {
			t.Errorf("%s: %+v", what, s)
		}
	}
}

// Somebody of this process has had the name since the outage.
func TestATryIsNotToldOfAnOutageThatIsOver(t *testing.T) {
	t.Parallel()
	p := place()
	_, a := waits(t, p, 300*ms, call.Reply{Err: call.ErrNoAnswer, Now: at(ms)})
	others(p, 300*ms, false)
	a.Next(at(ms).Awake(), nil)
	a.Answered(call.Reply{Err: call.ErrNoAnswer, Now: at(200 * ms)}, false)
	h, now := a.hold, at(time.Minute)
	a.Answered(call.Reply{Asked: now, Now: now}, false)
	p.vacate(h, claim.Cleanup{}, now) // the asker begins for the other one
	if s := p.NewCaller(now.Awake(), want("n", 300*ms), true).Next(now.Awake()); s.Do != Watch {
		t.Errorf("%+v", s)
	}
}

func TestATryWhoseTimeIsOverDoesNotAsk(t *testing.T) {
	t.Parallel()
	p := place()
	other, c := p.NewCaller(0, want("n", 300*ms), true), p.NewCaller(0, want("n", 300*ms), true)
	other.Next(0)
	c.Next(0)
	gone := errors.New("gone")
	other.Answered(call.Reply{Err: gone, Now: at(100 * ms)}, gone)
	if s := c.Next(at(driver.Patience(300 * ms)).Awake()); s.Do != Over || !errors.Is(s.Err, ErrSilent) {
		t.Errorf("%+v", s)
	}
	c = p.NewCaller(0, want("other", 300*ms), true)
	c.Next(0)
	if s := c.Answered(call.Reply{Now: at(290 * ms)}, nil); s.Do != Over || !errors.Is(s.Err, ErrSilent) {
		t.Errorf("it was granted the name, and little of that is left: %+v", s)
	}
}

// What was granted without the service is for those who asked so. The service knows nothing of its token, so nobody asks with that.
func TestAGrantWithoutTheServiceThatSuitsNobodyIsReleased(t *testing.T) {
	t.Parallel()
	p := place()
	held := call.Reply{Err: &driver.Held{}, Now: at(ms)}
	first, a := waits(t, p, time.Second, held)
	other := others(p, time.Second, true)[0]
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

func TestAGrantThatSuitsNobodyAgainIsReleased(t *testing.T) {
	t.Parallel()
	for _, without := range []string{"", "token"} { // the service, the second time
		p := place()
		first, a := waits(t, p, time.Second, call.Reply{Err: &driver.Held{}, Now: at(ms)})
		others := others(p, time.Second, true, false)
		grant := call.Reply{Now: at(2 * ms)}
		for _, leaves := range []*Caller{first, others[0]} {
			asked := a.Next(at(ms).Awake(), nil).Claim
			leaves.Leave(nil)
			if s := a.Answered(grant, false); (s.Behind == asked) != (leaves != first) {
				t.Fatalf("%q: %+v", without, s)
			}
			grant.Grant.Degraded = without
		}
		s := a.Next(at(2*ms).Awake(), nil)
		if without != "" && s.Do == Again && s.Clean.Once {
			s = a.Next(at(2*ms).Awake(), nil)
		}
		if s.Do != Send || s.Want != others[1].Want {
			t.Errorf("%q: %+v", without, s)
		}
	}
}

func TestAGrantThatSuitsNobodyWhoIsFirstGoesToTheNextWhomItSuits(t *testing.T) {
	t.Parallel()
	p := place()
	held := call.Reply{Err: &driver.Held{}, Now: at(ms)}
	first, a := waits(t, p, time.Second, held)
	first.Want.NoRenewal = true
	others := others(p, time.Second, false, true, false)
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
