//go:build linux

package weather

import (
	"testing"
	"time"
)

// The split of these tests, in milliseconds: w1 stays with the old master.
func splitAt(service string) *Evidence {
	ms := int64(time.Millisecond)
	return newEvidence(service, []Event{
		{At: 1000 * ms, Kind: Faulted, ID: "f", Fault: "split", Cut: []string{"w1"}},
		{At: 4000 * ms, Kind: Turned, ID: "f", Class: promoted},
		{At: 6000 * ms, Kind: Turned, ID: "f", Class: joined},
		{At: 6500 * ms, Kind: Turned, ID: "f", Class: demoted},
		{At: 6600 * ms, Kind: Healed, ID: "f", Fault: "split"},
		{At: 9000 * ms, Kind: Faulted, ID: "vain", Fault: "split", Cut: []string{"w2"}}, // nobody could be promoted
		{At: 9000 * ms, Kind: Healed, ID: "vain", Fault: "split"},
	}, nil)
}

// trusted is a lease of a worker's process, from when it was answered until it was last trusted.
func trusted(life string, answered, last int64) *Hold {
	ms := int64(time.Millisecond)
	return &Hold{ID: life, Worker: life, Name: "a", Asked: (answered - 10) * ms, Answered: answered * ms, Last: last * ms}
}

func TestOnlyTwoMastersExplainAnOverlap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		service string
		a, b    *Hold
		want    string
	}{
		{"both masters have granted", Sentinel, trusted("w1.1", 4500, 5000), trusted("w2.1", 4600, 4700), bySplit},
		{"in any order", Sentinel, trusted("w2.1", 4600, 4700), trusted("w1.1", 4500, 5000), bySplit},
		{"the old one before the cut", Sentinel, trusted("w1.1", 500, 5000), trusted("w2.1", 4600, 4700), bySplit},
		{"until the old one's last grant is over", Sentinel, trusted("w1.1", 6400, 7400), trusted("w2.1", 6900, 8000), bySplit},
		{"and not longer", Sentinel, trusted("w1.1", 6400, 7600), trusted("w2.1", 6900, 8000), unexplained},
		{"nor after it was demoted", Sentinel, trusted("w1.1", 6600, 6900), trusted("w2.1", 6700, 7000), unexplained},
		{"nor before anybody was promoted", Sentinel, trusted("w1.1", 1500, 3500), trusted("w2.1", 2000, 3000), unexplained},
		{"on the side of the old one", Sentinel, trusted("w1.1", 4500, 5000), trusted("w1.2", 4600, 4700), unexplained},
		{"on the side of the new one", Sentinel, trusted("w3.1", 4500, 5000), trusted("w2.1", 4600, 4700), unexplained},
		{"who was cut off meets the others again", Sentinel, trusted("w1.1", 5900, 6300), trusted("w1.2", 6100, 6200), bySplit},
		{"a worker with a longer name is another one", Sentinel, trusted("w11.1", 4500, 5000), trusted("w2.1", 4600, 4700), unexplained},
		{"there were never two", Sentinel, trusted("w1.1", 9000, 9500), trusted("w2.1", 9000, 9500), unexplained},
		{"before any fault", Sentinel, trusted("w1.1", 100, 500), trusted("w2.1", 200, 300), unexplained},
		{"one after the other", Sentinel, trusted("w1.1", 4500, 5000), trusted("w2.1", 5000, 5100), none},
		{"where a replica has to have the grant", Replicas, trusted("w1.1", 4500, 5000), trusted("w2.1", 4600, 4700), unexplained},
	} {
		v := splitAt(c.service)
		if got := v.overlap(c.a, c.b); got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
		v.Holds = []*Hold{c.a, c.b}
		if red := len(checkBelief(v)) > 0; red != (c.want == unexplained) {
			t.Errorf("%s: belief is red: %t", c.name, red)
		}
	}
}

func TestAFenceHasOneLeaseUnlessTwoMastersHaveMintedIt(t *testing.T) {
	t.Parallel()
	for service, want := range map[string]int{Sentinel: 0, Replicas: 1} {
		v := splitAt(service)
		v.Holds = []*Hold{trusted("w1.1", 4500, 5000), trusted("w2.1", 4600, 4700), trusted("w3.1", 4800, 4900)}
		write := func(id string, fence uint64) {
			v.Events = append(v.Events, Event{Kind: Wrote, ID: id, Name: "a", Fence: fence, Fenced: true})
		}
		write("w1.1", 7)
		write("w2.1", 7)
		if breaches := checkStore(v); len(breaches) != want {
			t.Errorf("%s: %q", service, breaches)
		}
		write("w2.1", 8)
		write("w3.1", 8) // of the same master
		write("w1.1", 6)
		if breaches := checkStore(v); len(breaches) != want+2 {
			t.Errorf("%s: %q", service, breaches)
		}
	}
}

func TestAHandoffMayHaveBeenUsedAtEitherMaster(t *testing.T) {
	t.Parallel()
	v := splitAt(Sentinel)
	giver, taker, next := trusted("w2.1", 5000, 5100), trusted("w1.1", 6300, 6310), trusted("w3.1", 6330, 6340)
	ms := int64(time.Millisecond)
	giver.Releasing, giver.ReleasedAt, giver.Outcome, giver.Left = 6200*ms, 6210*ms, "ok", 400*ms
	taker.Handoff = giver.ID
	giver.Fence, taker.Fence, next.Fence = 1, 2, 3
	for _, h := range []*Hold{giver, taker, next} {
		h.Name = passedName
		v.Holds = append(v.Holds, h)
		v.Calls = append(v.Calls, &Call{
			Asked:    Event{At: h.Asked, ID: h.ID, Name: h.Name, Handoff: h.Handoff},
			Answered: Event{At: h.Answered, ID: h.ID, Name: h.Name, Class: "ok"},
		})
	}
	if breaches := checkLinearizable(v); len(breaches) > 0 {
		t.Errorf("the one who was cut off has met the others again, and used the hand-off: %q", breaches)
	}
	taker.Handoff, v.Calls[1].Asked.Handoff = "", ""
	if len(checkLinearizable(v)) == 0 {
		t.Error("the name was left for a hand-off that nobody used")
	}
}

func TestAReadersFenceMayFallWhereAnotherMasterTakesOver(t *testing.T) {
	t.Parallel()
	for service, want := range map[string]int{Sentinel: 1, Replicas: 3} {
		ms := int64(time.Millisecond)
		v := newEvidence(service, []Event{
			{At: 1000 * ms, Kind: Faulted, ID: "f", Fault: "failover"}, {At: 1200 * ms, Kind: Healed, ID: "f", Fault: "failover"},
		}, nil)
		lease := func(life string, answered int64, mode Mode, fence uint64) {
			h := trusted(life, answered, answered+10)
			h.Name, h.Mode, h.Fence, h.ReleasedAt = readName, mode, fence, (answered+12)*ms
			v.Holds = append(v.Holds, h)
		}
		lease("w1.1", 900, "", 8)
		lease("w2.1", 1300, Reader, 7)
		lease("w3.1", 1400, "", 6) // no other master between them
		if breaches := checkSharing(v); len(breaches) != want {
			t.Errorf("%s: %q", service, breaches)
		}
	}
}

func TestAMarkerMayBeLostInASplit(t *testing.T) {
	t.Parallel()
	for _, service := range []string{Sentinel, Replicas} { // no release waits for a replica
		v := splitAt(service)
		done, again := trusted("w1.1", 4500, 5000), trusted("w2.1", 5500, 5600)
		done.Complete, done.Outcome, done.Releasing, done.ReleasedAt = true, "ok", done.Last, done.Last
		if v.again(done, again) != 0 {
			t.Errorf("%s: the marker was at the old master", service)
		}
		late := trusted("w2.1", 8500, 8600)
		again.Complete, again.Outcome, again.Releasing, again.ReleasedAt = true, "ok", 6700*int64(time.Millisecond), 6700*int64(time.Millisecond)
		if v.again(again, late) == 0 {
			t.Errorf("%s: there was only one master by then", service)
		}
	}
}

func TestTheHistoryThatGoesOnIsThatOfTheNewMaster(t *testing.T) {
	t.Parallel()
	v := splitAt(Sentinel)
	v.Holds = []*Hold{trusted("w1.1", 4500, 5000), trusted("w2.1", 4600, 4700)}
	v.Holds[0].Fence, v.Holds[1].Fence = 9, 8
	if breaches := checkLinearizable(v); len(breaches) > 0 {
		t.Errorf("%q", breaches)
	}
	v.Holds = append(v.Holds, trusted("w3.1", 5500, 5600))
	v.Holds[2].Fence = 7
	if len(checkLinearizable(v)) == 0 {
		t.Error("a fence fell at the new master")
	}
}
