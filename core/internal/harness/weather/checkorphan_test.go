//go:build linux

package weather

import "testing"

func TestAGrantThatNobodyWaitsForIsGoneSoon(t *testing.T) {
	t.Parallel()
	const asked, left, granted = 100, 200, 500
	for _, c := range []struct {
		name  string
		end   string
		to    int64
		fault Event
		left  int64
		red   bool
	}{
		{"it is given back", endFreed, granted + 900, Event{}, left, false},
		{"it is given back late", endFreed, granted + 1400, Event{}, left, true},
		{"it ends by itself", endExpired, granted + 4000, Event{}, left, true},
		{"somebody waits for it", endFreed, granted + 1400, Event{}, granted + 1000, false},
		{"the server is stopped meanwhile", endFreed, granted + 1400, Event{At: ms(granted + 300), Fault: "pause"}, left, false},
		{"it has gone on just then", endFreed, granted + 1400, Event{At: ms(granted - 300), Fault: "pause"}, left, true},
		{"the link is dark", endFreed, granted + 1400, Event{At: ms(granted - 300), Fault: "dark"}, left, false},
		{"connections are slow", endExpired, granted + 4000, Event{At: ms(granted - 300), Fault: "uneven"}, left, true},
	} {
		r := &Reign{Name: herdName, Token: "t", Worker: "w1.1", From: ms(granted), To: ms(c.to), End: c.end}
		r.prolong(ms(granted), ms(granted+4000))
		v := &Evidence{
			Service: One, Servers: []*Ledger{{Reigns: []*Reign{r}}},
			Calls: []*Call{{Event{At: ms(asked), Name: herdName, Worker: "w1.1"}, Event{At: ms(c.left), Class: "ended"}}},
		}
		if e := c.fault; e.Fault != "" {
			e.Kind, e.ID = Faulted, "f"
			v.Events = []Event{e, {At: e.At + ms(310), Kind: Healed, ID: "f"}}
		}
		if found := checkOrphans(v); len(found) > 0 != c.red {
			t.Errorf("%s: %q", c.name, found)
		}
	}
}

func TestAForceReleaseEndsNoLaterTenure(t *testing.T) {
	t.Parallel()
	for began, red := range map[int64]bool{30: false, 50: true} {
		r := &Reign{Name: seizedName, Worker: "w1.1", From: ms(began), To: ms(61), End: endOperator, EndedBy: admin}
		v := &Evidence{
			Service: One, Servers: []*Ledger{{Reigns: []*Reign{r}}},
			Events: []Event{{At: ms(62), Kind: Seized, Name: seizedName, Until: ms(40), Last: ms(60), Class: "ok"}},
		}
		if found := checkSeized(v); len(found) > 0 != red {
			t.Errorf("it began at %d: %q", began, found)
		}
	}
}

func TestNothingExplainsTwoInTheLineOfOneProcess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		b    Hold
		want string
	}{
		{"another process", Hold{Worker: "w2.1"}, byOperator},
		{"the same one", Hold{Worker: "w1.1"}, unexplained},
		{"the same one, by a hand-off", Hold{Worker: "w1.1", Handoff: "x"}, byOperator},
		{"the same one, degraded, by a hand-off", Hold{Worker: "w1.1", Handoff: "x", Mode: Degraded}, unexplained},
	} {
		a := Hold{Worker: "w1.1", Name: localName, Answered: ms(10), Last: ms(100), Ghost: true}
		c.b.Name, c.b.Answered, c.b.Last = localName, ms(50), ms(60)
		if got := (&Evidence{Service: One}).overlap(&a, &c.b); got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
}
