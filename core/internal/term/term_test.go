package term

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

func at(d time.Duration) clock.Reading { return clock.Reading{}.Earlier(-d) }

const ms = time.Millisecond

// granted is a term of 3 s, asked for at 0 and heard at 1 ms, with four turns.
func granted(t Turn) Term {
	return New(Grant{Asked: at(0), Heard: at(ms), TTL: 3 * time.Second, Fence: 7, Fences: 4}, t)
}

var usual = Turn{Every: time.Second}

// The watchdog may look later than the answer comes.
func TestAnAnswerAfterTrustHasEndedRevivesNothing(t *testing.T) {
	t.Parallel()
	x := granted(usual)
	if !x.Renew(at(time.Second).Awake()) || x.Renew(at(time.Second).Awake()) || x.Confirm() {
		t.Fatal("one renewal at a time")
	}
	end := at(Trust(3 * time.Second)) // counted from before the request
	if loss := x.Renewed(at(time.Second), end, 3*time.Second, Yes); loss != Expired || x.Left(at(time.Second)) != 0 || x.Look(end) != None {
		t.Error(loss)
	}
}

func TestARenewalForAShorterTTLCutsNothingShort(t *testing.T) {
	t.Parallel()
	for _, now := range []time.Duration{0, ms, 100 * ms, 1234567 * time.Microsecond, 2967 * ms} {
		x := granted(usual)
		until, ttl := x.Until(), x.Least(at(now))
		x.Confirm()
		x.Renewed(at(now), at(now), ttl, Yes)
		if x.Until() < until || x.Until() > until.Add(3*ms) || ttl%ms != 0 {
			t.Errorf("at %s: %s, trusted for %s longer", now, ttl, x.Until().Sub(until))
		}
	}
}

func TestAGrantInTheQueueSurvivesAFailedRenewalWhateverItsTTL(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{15 * time.Second, time.Minute, time.Hour} {
		x := granted(Turn{Every: ttl / 3}) // trusted for 3 s at first
		tries := 0
		for {
			due, early := x.Due()
			now := due.Sub(0) - early
			if x.Look(at(now)) != None || !x.Renew(at(now).Awake()) {
				break
			}
			tries++
			sent := now
			now += x.Patience(at(now))
			x.Renewed(at(sent), at(now), ttl, Silence)
		}
		if tries < 6 {
			t.Errorf("TTL %s: %d tries", ttl, tries)
		}
		if x.Look(at(3 * time.Second)); x.loss != Unreachable {
			t.Errorf("TTL %s: %v", ttl, x.loss)
		}
	}
}

func TestRenewalsAreAsRareAsTheyWereAskedToBe(t *testing.T) {
	t.Parallel()
	x := New(Grant{TTL: 10 * time.Minute}, Turn{Every: 10 * time.Second})
	if due, early := x.Due(); due != at(10*time.Second).Awake() || early > time.Second {
		t.Errorf("due %d, early %s", due, early)
	}
	x = granted(Turn{})
	if due, _ := x.Due(); due != x.Until() || x.Renew(at(2*time.Second).Awake()) || !x.Confirm() {
		t.Error("nobody renews it but Confirm")
	}
	x.Renewed(at(2*time.Second), at(2*time.Second), time.Minute, Yes)
	if due, _ := x.Due(); due != x.Until() {
		t.Error("Confirm does not begin it either")
	}
}

func TestWhatWasAskedForAtOnceIsSpreadAndWhatIsRenewedTogetherStaysTogether(t *testing.T) {
	t.Parallel()
	slots := map[time.Duration]int{}
	for i := range 1000 {
		asked := time.Duration(i) * ms
		x := New(Grant{Asked: at(asked), Heard: at(asked), TTL: 30 * time.Second}, Turn{Every: 10 * time.Second})
		y := New(Grant{Asked: at(asked + ms/2), Heard: at(asked), TTL: 30 * time.Second}, Turn{Every: 10 * time.Second})
		due, _ := x.Due()
		with, _ := y.Due()
		wait := due.Sub(at(asked).Awake())
		if wait > 10*time.Second || wait < 7400*ms || with.Sub(due) != ms/2 {
			t.Errorf("after %s and %s", wait, with.Sub(at(asked).Awake()))
		}
		slots[wait/(250*ms)]++
	}
	if len(slots) < 9 {
		t.Errorf("in %d slots", len(slots))
	}
}

func TestMaxHoldStopsTheTurnAndLeavesTheReleaseToDo(t *testing.T) {
	t.Parallel()
	stopping := Turn{Every: time.Second, MaxHold: 100 * ms}
	x := granted(stopping)
	if x.Look(at(100*ms)) != None || x.Look(at(101*ms)) != MaxHold || x.Look(at(102*ms)) != None || x.Left(at(102*ms)) != 0 {
		t.Error("told once, and not trusted since")
	}
	if due, _ := x.Due(); due != x.Until() || x.Renew(at(time.Second).Awake()) || x.Confirm() || x.Next(at(103*ms), usual) {
		t.Error("not renewed, and no turn")
	}
	y := x
	if release, _ := x.End(at(200 * ms)); !release || !x.MayRelease(at(200*ms)) {
		t.Error("to be released")
	}
	for _, a := range []Answer{Yes, NotOwner} {
		z := x
		if r, loss := z.ReleasedBy(at(201*ms), a, false, true); r != WasLost || loss != MaxHold {
			t.Error(a, r, loss)
		}
	}
	if y.Look(at(3*time.Second)) != None || y.state != Lost {
		t.Error("lost, and told before")
	}
	if !y.Gone() || y.Gone() || y.Gone() {
		t.Error("gone once")
	}
	if release, loss := y.End(at(3 * time.Second)); release || loss != None {
		t.Error("over")
	}
}

// answered is a renewal that was sent at 2 ms, and its answer.
func answered(heard time.Duration, a Answer) func(*Term) {
	return func(x *Term) {
		x.Confirm()
		x.Renewed(at(2*ms), at(heard), 3*time.Second, a)
	}
}

func TestATurnNeedsTrustAndNothingInDoubt(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		does func(*Term)
		now  time.Duration
		want bool
	}{
		"all is well":               {func(*Term) {}, 2 * ms, true},
		"the time of turns":         {func(*Term) {}, 6 * ms, false},
		"it counts from ...":        {func(*Term) {}, 6*ms - 1, true},
		"one under way":             {func(x *Term) { x.Confirm() }, 3 * ms, false},
		"one has failed":            {answered(3*ms, Silence), 4 * ms, false},
		"one was answered":          {answered(3*ms, Yes), 4 * ms, true},
		"a renewal begins no turns": {answered(5*ms, Yes), 6 * ms, false},
		"fences used up": {func(x *Term) {
			for range 3 {
				x.Next(at(2*ms), usual)
			}
		}, 3 * ms, false},
		"MaxHold is over, and nobody has looked": {func(x *Term) { *x = granted(Turn{MaxHold: 2 * ms}) }, 3 * ms, false},
		"it ends":                                {func(x *Term) { x.End(at(2 * ms)) }, 3 * ms, false},
		"little is left": {func(x *Term) {
			*x = New(Grant{Asked: at(-2100 * ms), Heard: at(ms), TTL: 3 * time.Second, Fences: 2}, usual)
		},
			2 * ms, false},
	} {
		x := granted(usual)
		row.does(&x)
		if got := x.Next(at(row.now), usual); got != row.want {
			t.Errorf("%s: %t", what, got)
		}
	}
	x := granted(Turn{Every: time.Second, MaxHold: 2 * ms})
	if !x.Next(at(2*ms), Turn{MaxHold: 10 * ms}) || x.Look(at(5*ms)) != None || x.Look(at(12*ms)) != MaxHold {
		t.Error("a turn has a MaxHold of its own")
	}
}

func TestAReleaseWaitsForTheRenewalAndNothingIsSentAfterTheEnd(t *testing.T) {
	t.Parallel()
	x := granted(usual)
	x.Renew(at(time.Second).Awake())
	if release, _ := x.End(at(time.Second)); !release || x.MayRelease(at(time.Second)) {
		t.Error("a renewal is under way")
	}
	x.Renewed(at(time.Second), at(1001*ms), 3*time.Second, Yes)
	if !x.MayRelease(at(1001*ms)) || x.MayRelease(at(3*time.Second)) {
		t.Error("after it, and while the old trust stands: the answer did not count")
	}
	if x.Renew(at(2*time.Second).Awake()) || x.Confirm() {
		t.Error("no renewal after the end")
	}
}

func TestWhatAReleaseHasComeTo(t *testing.T) {
	t.Parallel()
	const late = 3 * time.Second
	for _, row := range []struct {
		a           Answer
		open, tried bool
		now         time.Duration
		want        Result
		loss        Loss
	}{
		{Yes, false, true, ms, Freed, None},
		{Yes, true, true, late, Freed, None},
		{NotOwner, false, true, ms, WasLost, Taken},
		{NotOwner, true, true, ms, Freed, None},
		{NotOwner, true, true, late, Unconfirmed, None},
		{Silence, true, true, ms, Unconfirmed, None},
		{NotDone, false, true, ms, Unconfirmed, None},
		{NotDone, false, false, late, WasLost, Expired},
	} {
		x := granted(usual)
		x.End(at(0))
		if got, loss := x.ReleasedBy(at(row.now), row.a, row.open, row.tried); got != row.want || loss != row.loss {
			t.Errorf("%+v: %v, %v", row, got, loss)
		}
		if due, _ := x.Due(); due != clock.Never || x.Look(at(late)) != None || x.Left(at(0)) != 0 {
			t.Error("it is over")
		}
	}
}
