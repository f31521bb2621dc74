//go:build linux

package weather

import "testing"

func TestANameIsFreedEarlyUnlessItsLeaseWasLostToAFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		last, freed int64
		outcome     string
		fault       string
		red         bool
	}{
		{"it is released", 900, 901, "ok", "", false},
		{"it is freed under trusted work", 900, 500, "ok", "", true},
		{"a fault excuses nothing while it is trusted", 900, 500, "lost", "dark", true},
		{"it was lost, and its process has cleaned up", 400, 500, "lost", "dark", false},
		{"it was lost, and there was no fault", 400, 500, "lost", "", true},
		{"it was not lost", 400, 500, "ok", "dark", true},
	} {
		r := &Reign{Name: "solo-w1.1", Worker: "w1.1", From: ms(100), To: ms(c.freed), End: endFreed, EndedBy: "w1.1"}
		v := &Evidence{Holds: []*Hold{{
			ID: "a", Name: r.Name, Worker: r.Worker, Asked: ms(90), Answered: ms(110), Last: ms(c.last), Releasing: ms(900), Outcome: c.outcome, Reign: r,
		}}}
		if c.fault != "" {
			v.Events = []Event{{At: ms(200), Kind: Faulted, ID: "f", Fault: c.fault}, {At: ms(450), Kind: Healed, ID: "f"}}
		}
		if found := checkEarly(v); len(found) > 0 != c.red {
			t.Errorf("%s: %q", c.name, found)
		}
	}
}
