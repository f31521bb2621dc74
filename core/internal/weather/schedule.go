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
	Name string // of faults of a key
}

// Kinds of faults: how often each comes in proportion, and how long it lasts at most.
var kinds = []struct {
	name  string
	share int
	most  time.Duration
}{
	// A worker's link.
	{"delay", 5, 900 * time.Millisecond},
	{"drop", 8, 1500 * time.Millisecond}, // replies
	{"dark", 4, 2200 * time.Millisecond},
	{"fade", 5, 2200 * time.Millisecond}, // slow, then dark
	{"reset", 3, 0},
	{"refuse", 2, 900 * time.Millisecond},
	{"hold", 3, 700 * time.Millisecond}, // requests arrive later
	// A worker's process.
	{"stop", 5, 2200 * time.Millisecond},
	{"kill", 2, 300 * time.Millisecond},
	{"starve", 1, 300 * time.Millisecond}, // all of them
	// The server.
	{"pause", 2, 1300 * time.Millisecond},
	{"busy", 2, 400 * time.Millisecond}, // a slow script
	{"restart", 1, 100 * time.Millisecond},
	{"disconnect", 2, 0}, // CLIENT KILL
	{"deafen", 2, 0},     // CLIENT KILL TYPE pubsub
	{"scripts", 3, 0},    // SCRIPT FLUSH
	{"memory", 2, 600 * time.Millisecond},
	// Its data.
	{"flush", 1, 0},
	{"delete", 3, 0},
	{"foreign", 3, 500 * time.Millisecond},
	{"expire", 3, 0},
	{"persist", 2, 0},
	{"counter", 2, 0}, // the fence counter is deleted
	{"ahead", 0, 0},   // it stands ahead of the clock, as it does when that is set back
}

// forgetful faults take the fence counter away. After "ahead" they would make fences fall,
// which is no promise: fences grow as long as counter and clock are not both set back.
var forgetful = []string{"restart", "flush", "counter"}

// NewSchedule makes the faults of a seed, one every gap or so. Only the named kinds come if
// any are named.
func NewSchedule(seed uint64, length, gap time.Duration, workers int, only []string) []Fault {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: a seed is to be repeated
	names := slices.Clone(sharedNames)
	for i := range workers {
		names = append(names, soloName(workerID(i)))
	}
	var lots []int
	for i, k := range kinds {
		if len(only) == 0 || slices.Contains(only, k.name) {
			lots = append(lots, slices.Repeat([]int{i}, max(1, k.share))...)
		}
	}
	if len(lots) == 0 { // "none"
		return nil
	}
	var faults []Fault
	ahead := false
	for at := gap; at < length; at += gap/2 + time.Duration(random.Int64N(int64(gap))) {
		k := kinds[lots[random.IntN(len(lots))]]
		f := Fault{At: at, Kind: k.name, Who: random.IntN(workers), Name: names[random.IntN(len(names))]}
		if k.most > 0 {
			f.For = k.most/3 + time.Duration(random.Int64N(int64(k.most)*2/3))
		}
		if k.name == "ahead" && at < length/2 || ahead && slices.Contains(forgetful, k.name) {
			continue
		}
		ahead = ahead || k.name == "ahead"
		faults = append(faults, f)
	}
	return faults
}

func workerID(i int) string { return "w" + strconv.Itoa(i+1) }
