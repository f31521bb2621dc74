//go:build linux

package weather

import "testing"

func TestWhoStandsInLineIsPassedOnce(t *testing.T) {
	t.Parallel()
	reign := func(worker string, from, to int64) *Reign {
		return &Reign{Name: busyName, Worker: worker, From: ms(from), To: ms(to)}
	}
	again := func(worker string, from, step int64, n int) (all []*Reign) {
		for range n {
			all = append(all, reign(worker, from, from+1))
			from += step
		}
		return all
	}
	for _, c := range []struct {
		name   string
		reigns []*Reign
		line   []int64 // when it was deleted
		fault  string
		red    bool
	}{
		{"another one has it again and again", again("w2.1", 1000, 20, 5), nil, "", true},
		{"it has only just come", again("w2.1", 10, 20, 20), nil, "", false},
		{"each of many has it once", append(again("w2.1", 1000, 100, 2), again("w3.1", 1050, 100, 2)...), nil, "", false},
		{"it has had it itself", append(again("w2.1", 1000, 20, 5), reign("w1.1", 1600, 1700)), nil, "", false},
		{"the line was deleted", again("w2.1", 1000, 20, 5), []int64{ms(900)}, "", false},
		{"it is its own link's fault", again("w2.1", 1000, 20, 5), nil, "dark", false},
		{"it is no fault of that kind", again("w2.1", 1000, 20, 5), nil, "unline", true},
	} {
		v := &Evidence{
			Service: One,
			Servers: []*Ledger{{Reigns: c.reigns, Emptied: map[string][]int64{busyName: c.line}}},
			Calls:   []*Call{{Event{Name: busyName, Worker: "w1.1", ID: "call"}, Event{At: ms(2000), Name: busyName, Worker: "w1.1"}}},
		}
		if c.fault != "" {
			v.Events = []Event{{At: ms(500), Kind: Faulted, ID: "f", Fault: c.fault, Worker: "w1"}, {At: ms(1500), Kind: Healed, ID: "f"}}
		}
		if found := checkFair(v); len(found) > 0 != c.red {
			t.Errorf("%s: %q", c.name, found)
		}
	}
}

func TestWhoWaitsAsksNowAndThen(t *testing.T) {
	t.Parallel()
	ask := func(n int, step int64) (all []Command) {
		for i := range n {
			all = append(all, Command{At: int64(i) * step, Client: "w1.1", Args: []string{"evalsha", "", "1", Prefix + "a"}})
		}
		return all
	}
	served := make([]*Call, 20)
	for i := range served {
		served[i] = &Call{Answered: Event{At: ms(100), Name: "a", Worker: "w1.1", Class: "ok"}}
	}
	for _, c := range []struct {
		name     string
		commands []Command
		calls    []*Call
		red      bool
	}{
		{"every millisecond", ask(100, ms(1)), nil, true},
		{"every ten", ask(100, ms(10)), nil, false},
		{"for those whom it serves", ask(100, ms(1)), served, false},
	} {
		v := &Evidence{Service: One, Servers: []*Ledger{{Commands: c.commands}}, Calls: c.calls}
		if found := checkPolls(v); len(found) > 0 != c.red {
			t.Errorf("%s: %q", c.name, found)
		}
	}
}
