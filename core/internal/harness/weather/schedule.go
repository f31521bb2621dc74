//go:build linux

package weather

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// Fault is one fault of a schedule.
type Fault struct {
	At   time.Duration // since the traffic began
	For  time.Duration // 0 if it is over at once
	Kind string
	Who  int    // the worker, of faults of a process or a link
	Node int    // the server, of its faults; of a link's the first one
	Span int    // to how many servers a worker's links are disturbed
	Name string // of faults of a key
}

// Kinds of faults: how often each comes in proportion, how long it lasts at most, and in which
// services; in all of them, if none is said.
var kinds = []struct {
	name  string
	share int
	most  time.Duration
	in    []string
}{
	// A worker's links.
	{"delay", 5, 900 * time.Millisecond, nil},
	{"drop", 8, 1500 * time.Millisecond, nil}, // replies
	{"dark", 4, 2200 * time.Millisecond, nil},
	{"fade", 5, 2200 * time.Millisecond, nil}, // slow, then dark
	{"reset", 3, 0, nil},
	{"refuse", 2, 900 * time.Millisecond, nil},
	{"hold", 3, 700 * time.Millisecond, nil},    // requests arrive later
	{"astray", 2, 1500 * time.Millisecond, nil}, // new connections go nowhere
	{"uneven", 4, 1500 * time.Millisecond, nil}, // some connections are slow, and open slowly
	{"drip", 3, 900 * time.Millisecond, []string{One}},
	// A worker's process.
	{"stop", 5, 2200 * time.Millisecond, nil},
	{"kill", 2, 300 * time.Millisecond, nil},
	{"starve", 1, 300 * time.Millisecond, nil}, // all of them
	// A server.
	{"pause", 2, 1300 * time.Millisecond, nil},
	{"busy", 2, 400 * time.Millisecond, nil}, // a slow script
	{"restart", 1, 100 * time.Millisecond, []string{One}},
	{"leave", 2, 800 * time.Millisecond, []string{Redlock}}, // a restart that keeps the restart rule
	{"disconnect", 2, 0, nil},                               // CLIENT KILL
	{"deafen", 2, 0, nil},                                   // CLIENT KILL TYPE pubsub
	{"scripts", 3, 0, nil},                                  // SCRIPT FLUSH
	{"memory", 2, 600 * time.Millisecond, nil},
	{"readonly", 2, 600 * time.Millisecond, []string{One, Redlock}},
	// What servers are to each other.
	{"failover", 3, 0, []string{Cluster, Sentinel, Replicas}},
	{"split", 3, 3 * time.Second, []string{Cluster, Sentinel, Replicas}}, // two masters, for so long
	{"move", 8, 300 * time.Millisecond, []string{Cluster}},               // the slot of a name
	// The data.
	{"flush", 1, 0, []string{One}},
	{"delete", 3, 0, []string{One}},
	{"foreign", 3, 500 * time.Millisecond, []string{One}},
	{"expire", 3, 0, []string{One}},
	{"persist", 2, 600 * time.Millisecond, []string{One}},
	{"unline", 3, 0, []string{One}}, // who waits is forgotten, but not until when
	{"unbeat", 2, 0, []string{One}}, // until when is forgotten, but not who
	{"seize", 3, 600 * time.Millisecond, []string{One}},
	{"counter", 2, 0, []string{One}}, // the fence counter is deleted
	{"ahead", 0, 0, []string{One}},   // it stands ahead of the clock, as it does when that is set back
}

// forgetful faults take the fence counter away. After "ahead" they would make fences fall,
// which is no promise: fences grow as long as counter and clock are not both set back.
var forgetful = []string{"restart", "flush", "counter"}

// crowded faults are about names that many wait for.
var crowded = []string{"persist", "unline", "unbeat"}

// ofScripts are faults in what only scripts keep.
var ofScripts = []string{"unline", "unbeat", "seize"}

// Plan is what a schedule is made of.
type Plan struct {
	Seed        uint64
	Service     string
	Servers     int
	Workers     int
	Length, Gap time.Duration // there is a fault every gap or so
	Only        []string      // kinds of faults; all of them if none is named
}

// NewSchedule makes the faults of a plan. The same plan makes the same ones.
func NewSchedule(p Plan) []Fault {
	random := rand.New(rand.NewPCG(p.Seed, 0)) //nolint:gosec // G404: a seed is to be repeated
	names := slices.Concat(sharedNames, crowdNames, otherNames)
	for i := range p.Workers {
		names = append(names, soloName(workerID(i), 0))
	}
	lots := p.lots()
	if len(lots) == 0 { // "none"
		return nil
	}
	var faults []Fault
	ahead := false
	for at := p.Gap; at < p.Length; at += p.Gap/2 + time.Duration(random.Int64N(int64(p.Gap))) {
		k := kinds[lots[random.IntN(len(lots))]]
		f := Fault{
			At: at, Kind: k.name, Who: random.IntN(p.Workers), Name: names[random.IntN(len(names))],
			Node: random.IntN(p.Servers), Span: 1 + random.IntN(p.Servers),
		}
		if slices.Contains(crowded, k.name) {
			f.Name = [...]string{sharedNames[0], sharedNames[1], busyName, busyName}[random.IntN(4)]
		}
		if k.most > 0 {
			f.For = k.most/3 + time.Duration(random.Int64N(int64(k.most)*2/3))
		}
		if k.name == "ahead" && at < p.Length/2 || ahead && slices.Contains(forgetful, k.name) {
			continue
		}
		ahead = ahead || k.name == "ahead"
		faults = append(faults, f)
	}
	return faults
}

// lots are the kinds that may come, each as often as its share.
func (p Plan) lots() (lots []int) {
	plain := p.Service == Plain
	if plain { // the same server
		p.Service = One
	}
	for i, k := range kinds {
		named := len(p.Only) == 0 || slices.Contains(p.Only, k.name)
		if plain && slices.Contains(ofScripts, k.name) {
			continue
		}
		if named && (k.in == nil || slices.Contains(k.in, p.Service)) {
			lots = append(lots, slices.Repeat([]int{i}, max(1, k.share))...)
		}
	}
	return lots
}

func workerID(i int) string { return "w" + strconv.Itoa(i+1) }
