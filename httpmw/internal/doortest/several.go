package doortest

import (
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/core"
)

// transfer is a key of two names.
const transfer = "account:{query:from|int} account:{query:to|int}"

// testSeveralNames is about rules that take several names together.
func testSeveralNames(t *testing.T, door Door) {
	for name, test := range map[string]func(*testing.T, Door){
		"AllAreHeldAndFreed":             severalHeld,
		"EqualNamesCountOnce":            severalEqual,
		"OneThatIsHeldRefusesTheRequest": severalRefused,
		"OneThatIsMissingIsBlamed":       severalMissing,
		"OppositeOrdersDoNotDeadlock":    severalOpposite,
		"DoneMeansAllNamesInThisOrder":   severalDedup,
		"OneThatIsLostEndsTheHandler":    severalLost,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, door)
		})
	}
}

func severalHeld(t *testing.T, door Door) {
	var b *bench
	b = start(t, door, Setup{Key: transfer, Handler: func(w http.ResponseWriter, r *http.Request) {
		if b.free("account:1") || b.free("account:2") {
			t.Error("a name is free while the handler runs")
		}
		for _, name := range []string{"account:1", "account:2"} {
			if _, err := core.FenceFor(r.Context(), name); err != nil {
				t.Error(err)
			}
		}
		w.WriteHeader(http.StatusNoContent)
	}})
	if got := b.do("POST /plain?from=2&to=1", ""); got.status != http.StatusNoContent {
		t.Errorf("answered %d %s", got.status, got.body)
	}
	if !b.free("account:1") || !b.free("account:2") {
		t.Error("a name is left taken")
	}
}

func severalEqual(t *testing.T, door Door) {
	b := start(t, door, Setup{Key: transfer})
	b.passed(b.do("POST /plain?from=1&to=1", ""), "account:1")
}

func severalRefused(t *testing.T, door Door) {
	b := start(t, door, Setup{Key: transfer})
	free := b.hold("account:2", core.WithLabel("worker-1.internal"))
	b.expect(b.do("POST /plain?from=1&to=2", ""), rowHeld)
	b.expect(b.do("POST /plain?from=2&to=3", ""), rowHeld)
	b.handled(0)
	if !b.free("account:1") || !b.free("account:3") {
		t.Error("a name is left taken")
	}
	free()
	b.passed(b.do("POST /plain?from=1&to=2", ""), "account:2")
}

func severalMissing(t *testing.T, door Door) {
	b := start(t, door, Setup{Key: transfer})
	got := b.do("POST /plain?from=1", "")
	b.expect(got, rowBadKey)
	b.blames(got, "query:to", "missing")
	b.handled(0)
}

func severalOpposite(t *testing.T, door Door) {
	b := start(t, door, Setup{Key: transfer, Options: []core.Option{core.WithWait(core.WaitForever)}})
	answered := make(chan answer)
	const each = 20
	for range each {
		go func() { answered <- b.do("POST /plain?from=1&to=2", "") }()
		go func() { answered <- b.do("POST /plain?from=2&to=1", "") }()
	}
	for range 2 * each {
		b.passed(<-answered, "account:2")
	}
}

func severalDedup(t *testing.T, door Door) {
	b := start(t, door, Setup{Key: transfer, Options: paid})
	b.passed(b.do("POST /plain?from=1&to=2", ""), "account:2")
	b.expect(b.do("POST /plain?from=1&to=2", ""), rowDone)
	b.passed(b.do("POST /plain?from=1&to=3", ""), "account:3") // another transfer from the same account
	b.passed(b.do("POST /plain?from=2&to=1", ""), "account:2") // and one in the other direction
	b.handled(3)
}

func severalLost(t *testing.T, door Door) {
	var b *bench
	b = start(t, door, Setup{Key: transfer, Handler: func(_ http.ResponseWriter, r *http.Request) {
		b.store.Lose("account:1")
		<-r.Context().Done()
	}, Locker: nil, Options: []core.Option{core.WithTTL(200_000_000)}})
	b.expect(b.do("POST /plain?from=1&to=2", ""), rowLost)
}
