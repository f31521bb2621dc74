package claim

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

var (
	silence = driver.Meaning{}
	granted = driver.Meaning{Kind: driver.Done}
	refused = driver.Meaning{Kind: driver.HeldBy}
	nothing = driver.Meaning{Kind: driver.NotDone}
)

func wish(ttl time.Duration) *Wish { return &Wish{TTL: ttl} }

const second = clock.Awake(time.Second)

func claimOf(name string) *Claim {
	c := new(Claim)
	c.Begin(name, nil)
	return c
}

func TestAnotherTTLIsAskedForOnlyWhileNothingIsOpen(t *testing.T) {
	t.Parallel()
	c, short, long := claimOf("n"), wish(300*time.Millisecond), wish(30*time.Second)
	if !c.May(short, 0) || !c.May(long, 0) {
		t.Error("a fresh claim may ask for anything")
	}
	c.Ask(call.Acquire, short, 0)
	c.Answer(0, silence)
	if c.May(long, 0) || !c.May(short, 0) {
		t.Error("a command with 300 ms may still come")
	}
	if r := c.Renewal(long, long.TTL); r.TTL != short.TTL {
		t.Errorf("renews with %s", r.TTL)
	}
	c.Renewed(granted, 0)
	c.Outcome(call.Acquire, refused) // it was no more than that
	if !c.May(long, 0) {
		t.Error("nothing is open any more")
	}
	if r := c.Renewal(long, long.TTL); r.TTL != long.TTL {
		t.Errorf("renews with %s", r.TTL)
	}
	c.Renewed(silence, 0)
	if c.May(short, 0) || c.Drop(0) != (Cleanup{}) {
		t.Error("a renewal may come, and takes nothing")
	}
	keeps := *long
	keeps.MinHold = time.Second
	if c.May(&keeps, 0) {
		t.Error("a command without MinHold is under way")
	}
	c = claimOf("n")
	c.Ask(call.Acquire, &keeps, 0)
	if !c.May(&keeps, 0) || c.May(long, 0) {
		t.Error("a command with MinHold is under way")
	}
}

// step is what happens to a claim.
type step func(c *Claim)

func answer(at clock.Awake, m driver.Meaning) step { return func(c *Claim) { c.Answer(at, m) } }
func late(op call.Op, m driver.Meaning) step       { return func(c *Claim) { c.Outcome(op, m) } }

// asks is one more command, and its answer.
func asks(op call.Op, at clock.Awake, m driver.Meaning) step {
	return func(c *Claim) {
		c.Ask(op, wish(time.Second), 0)
		c.Answer(at, m)
	}
}

// end is the end of a claim, and what is done behind it.
type end func(c *Claim) Cleanup

func dropped(at clock.Awake) end { return func(c *Claim) Cleanup { return c.Drop(at) } }
func ended(at clock.Awake, confirmed, mayKeep bool) end {
	return func(c *Claim) Cleanup { return c.Ended(at, confirmed, mayKeep) }
}

func TestWhatIsDoneBehindAClaim(t *testing.T) {
	t.Parallel()
	hold, release := func(c *Claim) { c.Hold(0) }, (*Claim).End
	for what, row := range map[string]struct {
		steps []step
		end   end
		want  Cleanup
	}{
		"refused":                {[]step{answer(0, refused)}, dropped(0), Cleanup{}},
		"certainly not executed": {[]step{answer(0, nothing)}, dropped(0), Cleanup{}},
		"under way":              {nil, dropped(0), Cleanup{true, 30 * time.Second}},
		"unanswered":             {[]step{answer(second, silence)}, dropped(3 * second), Cleanup{true, 28 * time.Second}},
		"given back":             {[]step{answer(0, granted)}, dropped(0), Cleanup{Once: true}},
		"in the queue":           {[]step{answer(0, refused), asks(call.Wait, 0, refused)}, dropped(0), Cleanup{Once: true}},
		"never in the queue":     {[]step{answer(0, refused), asks(call.Wait, 0, nothing)}, dropped(0), Cleanup{}},
		"in the queue, and then not executed": {
			[]step{answer(0, refused), asks(call.Wait, 0, refused), asks(call.Wait, 0, nothing)}, dropped(0), Cleanup{Once: true},
		},
		"released, and nothing was open": {[]step{answer(0, granted), hold, release}, ended(0, true, false), Cleanup{}},
		"released, and a duplicate may come": {
			[]step{answer(second, silence), asks(call.Acquire, second, granted), hold, release},
			ended(second, true, false), Cleanup{For: 30 * time.Second},
		},
		"lost, and nothing was open": {[]step{answer(0, granted), hold}, ended(second, false, false), Cleanup{}},
		"lost, as a duplicate comes no more": { // it may have come in the last moment
			[]step{answer(second, silence), asks(call.Acquire, second, granted), hold}, ended(31*second, false, false), Cleanup{Once: true},
		},
		"a duplicate has come during the release": {
			[]step{answer(second, silence), hold, release, late(call.Acquire, granted)}, ended(second, true, false), Cleanup{Once: true},
		},
		"a duplicate has come during the work": {
			[]step{answer(second, silence), hold, late(call.Acquire, granted), release}, ended(second, true, false), Cleanup{},
		},
		"it was queued during the release": {
			[]step{answer(second, silence), hold, release, late(call.Wait, refused)}, ended(100*second, true, false), Cleanup{Once: true},
		},
		"to stay taken, and the release has no answer": {
			[]step{answer(second, silence), hold, release}, ended(second, false, true), Cleanup{},
		},
	} {
		c := claimOf("n")
		c.Ask(call.Acquire, wish(30*time.Second), 0)
		for _, step := range row.steps {
			step(c)
		}
		if got := row.end(c); got != row.want {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

func TestALateGrantIsGivenBackOnlyIfTheClaimIsOver(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		op    call.Op
		late  driver.Meaning
		stage func(*Claim)
		clean bool
		quiet bool
	}{
		"while it asks":            {call.Acquire, granted, func(*Claim) {}, false, false},
		"while it is held":         {call.Acquire, granted, func(c *Claim) { c.Hold(0) }, false, true},
		"while it is held, a Wait": {call.Wait, granted, func(c *Claim) { c.Hold(0) }, false, true},
		"during the release":       {call.Acquire, granted, func(c *Claim) { c.Hold(0); c.End() }, false, false},
		"after the end":            {call.Acquire, granted, func(c *Claim) { c.Drop(0) }, true, false},
		"after the end, a Wait":    {call.Wait, granted, func(c *Claim) { c.Drop(0) }, true, false},
		"refused after the end":    {call.Acquire, refused, func(c *Claim) { c.Drop(0) }, false, true},
		"queued after the end":     {call.Wait, refused, func(c *Claim) { c.Drop(0) }, true, false},
		"queued during the work":   {call.Wait, refused, func(c *Claim) { c.Hold(0) }, false, false},
		"a Wait that was not run":  {call.Wait, nothing, func(c *Claim) { c.Drop(0) }, false, true},
		"kept":                     {call.Acquire, granted, func(c *Claim) { c.Hold(0); c.End(); c.Ended(0, false, true) }, false, false},
	} {
		c := claimOf("n")
		c.Ask(call.Acquire, wish(time.Second), 0)
		c.Answer(0, silence)
		c.LeftBehind(0)
		row.stage(c)
		if clean := c.Outcome(row.op, row.late); clean != row.clean || c.Quiet() != row.quiet || c.Hangs() == (row.op == call.Wait) {
			t.Errorf("%s: clean %t, quiet %t, hangs %t", what, clean, c.Quiet(), c.Hangs())
		}
		if row.clean {
			c.Cleaned(driver.Meaning{Kind: driver.Done}, c.Settles())
			if c.Doubtful() {
				t.Errorf("%s: nothing can come any more", what)
			}
		}
	}
	c := claimOf("n")
	c.Ask(call.Wait, wish(time.Second), 0)
	c.Answer(0, refused)
	c.Ask(call.Acquire, wish(time.Second), 0)
	c.Answer(0, refused)
	c.Drop(0)
	if c.Cleaned(silence, c.Settles()); !c.Doubtful() {
		t.Error("it is in the queue until the clean-up is answered")
	}
}
