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

func TestWhatIsLeftForATicketIsForNobodyElse(t *testing.T) {
	t.Parallel()
	later := ms(1000)
	grant := func(lease, ticket string, fence uint64, at int64) porcupine.Operation {
		return operation(op{verb: grantIt, lease: lease, ticket: ticket, fence: fence, by: at + 1}, at, at+1)
	}
	trusted := func(lease string, at int64) porcupine.Operation {
		return operation(op{verb: believe, lease: lease, until: later}, at, at+1)
	}
	detached := []porcupine.Operation{
		grant("giver", "", 1, ms(0)), trusted("giver", ms(1)),
		operation(op{verb: freeIt, lease: "giver", until: ms(310)}, ms(10), ms(12)),
	}
	used := operation(op{verb: used, ticket: "giver"}, ms(100), ms(310))
	cases := []struct {
		name string
		then []porcupine.Operation
		can  bool
	}{
		{"by its ticket", []porcupine.Operation{grant("taker", "giver", 2, ms(20)), trusted("taker", ms(30))}, true},
		{"by another ticket", []porcupine.Operation{grant("taker", "another", 2, ms(20))}, false},
		{"by its ticket, with an old fence", []porcupine.Operation{grant("taker", "giver", 1, ms(20))}, false},
		{"by its ticket twice", []porcupine.Operation{grant("taker", "giver", 2, ms(20)), trusted("taker", ms(30)), grant("second", "giver", 3, ms(40))}, false},
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

func TestATicketThatNobodyHasHeardOfMayHaveBeenUsed(t *testing.T) {
	t.Parallel()
	call := func(ticket, class string, at int64) []Event {
		return []Event{
			{At: at, Kind: Asked, ID: ticket + class, Name: passedName, Ticket: ticket},
			{At: at + 1, Kind: Answered, ID: ticket + class, Name: passedName, Ticket: ticket, Class: class},
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
	if ops := v.lostTickets(passedName); len(ops) != 1 || ops[0].Call != ms(10) {
		t.Errorf("%d tickets: %v", len(ops), ops)
	}
	if passed := v.passes(); len(passed) != 1 || passed[0] != ms(20)+1-3 {
		t.Errorf("passed on in %v", passed)
	}
}

func TestANameThatIsLeftForATicketForTooLongIsAnOrphan(t *testing.T) {
	t.Parallel()
	for long, orphans := range map[int64]int{int64(ticketLife): 0, int64(ticketLife) + ms(1): 1} {
		reign := &Reign{Name: passedName, Token: "!hash", Worker: "w1.1", End: endExpired, Kept: true, To: math.MaxInt64}
		reign.prolong(0, long)
		v := &Evidence{Servers: []*Ledger{{Reigns: []*Reign{reign}}}}
		if found := checkOrphans(v); len(found) != orphans {
			t.Errorf("left for %d: %q", long, found)
		}
	}
}

func TestATicketInAHistoryIsFound(t *testing.T) {
	t.Parallel()
	locks, err := core.New(memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	x, err := locks.Acquire(t.Context(), passedName)
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := x.Detach(t.Context(), ticketLife)
	if err != nil {
		t.Fatal(err)
	}
	for text, found := range map[string]int{`{"error":"` + ticket.Encode() + `"}`: 1, `{"error":"` + strings.ToLower(ticket.Encode()) + `"}`: 0} {
		if breaches := checkSecrets(&Evidence{Texts: map[string]string{"a.log": text}}); len(breaches) != found {
			t.Errorf("%s: %q", text, breaches)
		}
	}
	if err := locks.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
