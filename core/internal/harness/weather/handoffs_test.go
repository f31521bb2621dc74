//go:build linux

package weather

import (
	"math"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestWhatIsLeftForAHandoffIsForNobodyElse(t *testing.T) {
	t.Parallel()
	later := ms(1000)
	grant := func(lease, handoff string, fence uint64, at int64) porcupine.Operation {
		return operation(op{verb: grantIt, lease: lease, handoff: handoff, fence: fence, by: at + 1}, at, at+1)
	}
	trusted := func(lease string, at int64) porcupine.Operation {
		return operation(op{verb: believe, lease: lease, until: later}, at, at+1)
	}
	detached := []porcupine.Operation{
		grant("giver", "", 1, ms(0)), trusted("giver", ms(1)),
		operation(op{verb: freeIt, lease: "giver", until: ms(310)}, ms(10), ms(12)),
	}
	used := operation(op{verb: used, handoff: "giver"}, ms(100), ms(310))
	cases := []struct {
		name string
		then []porcupine.Operation
		can  bool
	}{
		{"by its hand-off", []porcupine.Operation{grant("taker", "giver", 2, ms(20)), trusted("taker", ms(30))}, true},
		{"by another hand-off", []porcupine.Operation{grant("taker", "another", 2, ms(20))}, false},
		{"by its hand-off, with an old fence", []porcupine.Operation{grant("taker", "giver", 1, ms(20))}, false},
		{"by its hand-off twice", []porcupine.Operation{grant("taker", "giver", 2, ms(20)), trusted("taker", ms(30)), grant("second", "giver", 3, ms(40))}, false},
		{"in time, without it", []porcupine.Operation{grant("other", "", 2, ms(300))}, false},
		{"after its time", []porcupine.Operation{grant("other", "", 2, ms(310))}, true},
		{"after its time, with it", []porcupine.Operation{grant("taker", "giver", 2, ms(900))}, true},
		{"somebody came, and nobody knows what for", []porcupine.Operation{used, grant("other", "", 2, ms(200))}, true},
		{"before somebody came", []porcupine.Operation{used, grant("other", "", 2, ms(90))}, false},
		{"the giver goes on", []porcupine.Operation{trusted("giver", ms(13))}, false},
	}
	for _, c := range cases {
		verdict, _ := linearizable(append(detached, c.then...))
		if can := verdict == porcupine.Ok; can != c.can {
			t.Errorf("%s: can be %t; want %t", c.name, can, c.can)
		}
	}
}

func TestAHandoffThatNobodyHasHeardOfMayHaveBeenUsed(t *testing.T) {
	t.Parallel()
	call := func(handoff, class string, at int64) []Event {
		return []Event{
			{At: at, Kind: Asked, ID: handoff + class, Name: passedName, Handoff: handoff},
			{At: at + 1, Kind: Answered, ID: handoff + class, Name: passedName, Handoff: handoff, Class: class},
		}
	}
	events := []Event{
		{At: 1, Kind: Asked, ID: "giver", Name: passedName}, {At: 2, Kind: Answered, ID: "giver", Name: passedName, Class: "ok"},
		{At: 3, Kind: Releasing, ID: "giver", Name: passedName, Keep: ms(300)}, {At: ms(5), Kind: Released, ID: "giver", Class: "ok"},
	}
	events = append(events, call("giver", "ended", ms(10))...)
	events = append(events, call("giver", "ok", ms(20))...)
	events = append(events, call("giver", "held", ms(400))...) // its time is over
	v := newEvidence(One, events, nil)
	if ops := v.lostHandoffs(passedName); len(ops) != 1 || ops[0].Call != ms(10) {
		t.Errorf("%d hand-offs: %v", len(ops), ops)
	}
	if passed := v.passes(); len(passed) != 1 || passed[0] != ms(20)+1-3 {
		t.Errorf("passed on in %v", passed)
	}
}

func TestANameThatIsLeftForAHandoffForTooLongIsAnOrphan(t *testing.T) {
	t.Parallel()
	for long, orphans := range map[int64]int{int64(handoffLife): 0, int64(handoffLife) + ms(1): 1} {
		reign := &Reign{Name: passedName, Token: "!hash", Worker: "w1.1", End: endExpired, Kept: true, To: math.MaxInt64}
		reign.prolong(0, long)
		v := &Evidence{Servers: []*Ledger{{Reigns: []*Reign{reign}}}}
		if found := checkOrphans(v); len(found) != orphans {
			t.Errorf("left for %d: %q", long, found)
		}
	}
}

func TestAHandoffInAHistoryIsFound(t *testing.T) {
	t.Parallel()
	locks, err := core.New(memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	x, err := locks.Acquire(t.Context(), passedName)
	if err != nil {
		t.Fatal(err)
	}
	handoff, err := x.Detach(t.Context(), handoffLife)
	if err != nil {
		t.Fatal(err)
	}
	for text, found := range map[string]int{`{"error":"` + handoff.Encode() + `"}`: 1, `{"error":"` + strings.ToLower(handoff.Encode()) + `"}`: 0} {
		if breaches := checkSecrets(&Evidence{Texts: map[string]string{"a.log": text}}); len(breaches) != found {
			t.Errorf("%s: %q", text, breaches)
		}
	}
	if err := locks.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
