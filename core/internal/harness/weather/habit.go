//go:build linux

package weather

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// What workers ask for. Each has a name of its own besides, which nobody else asks for.
var (
	sharedNames = []string{"a", "b"} // one holder each
	manyNames   = []string{"p", "q"} // taken together, or one of them
	keptName    = "kept"             // with WithMinHold, and by others
	longName    = "long"             // for several TTLs, where there may be two masters
	readName    = "read"             // by readers and writers
	limitedName = "limited"          // by so many as places says
	jobName     = "job-"             // and a number: with WithDedup
	passedName  = "passed"           // goes on in other processes, by hand-offs
	nestedName  = "nested"           // taken again by who has it
	localName   = "local"            // with LocalOnly
	herdName    = "herd"             // by many who give up together
	busyName    = "busy"             // by some in each process, all the time
	seizedName  = "seized"           // an operator takes it away
	crowdNames  = []string{readName, limitedName}
	otherNames  = []string{keptName, passedName, nestedName, localName, herdName, busyName, seizedName}
)

const (
	places = 2
	keep   = 400 * time.Millisecond // of WithMinHold
	window = 3 * time.Second        // of WithDedup
	shift  = 2 * time.Second        // after it there is another job
)

// soloName is what one of a worker's goroutines has for itself.
func soloName(id string, number int) string { return "solo-" + id + strings.Repeat("'", number) }

// ownHerd is what a worker's own herds want.
func ownHerd(id string) string { return herdName + "-" + id }

// ownLocal is what a worker's own goroutines want with LocalOnly. So its process has that name nearly
// always, in whichever outage.
func ownLocal(id string) string { return localName + "-" + id }

func isLocal(name string) bool { return strings.HasPrefix(name, localName) }

// life is the TTL of the leases of a name. That of herds is long, as what one of them leaves behind
// is to be gone long before.
func life(name string) time.Duration {
	if strings.HasPrefix(name, herdName) {
		return 4 * TTL
	}
	return TTL
}

// together says whether several may hold a name at a time.
func together(name string) bool { return name == readName || name == limitedName }

// Mode is how a lease shares its name with others.
type Mode string

// The modes.
const (
	Alone    Mode = ""
	Reader   Mode = "reader"
	Limited  Mode = "limited"
	Inner    Mode = "inner"    // inside another one: no holder by itself
	Degraded Mode = "degraded" // of its process only
)

// turn is one call of a worker, and what it does with the lease.
type turn struct {
	id    string
	names []string
	mode  Mode
	opts  []core.Option
	by    core.Handoff // that it comes with, if it does

	try      bool
	patience time.Duration
	hold     time.Duration
	deaf     bool // the work does not listen to its context
	gone     bool // the release has a ctx that has ended
	complete bool // it ends with Complete

	caller  context.Context // whose end is not the turn's own, or nil
	keep    time.Duration   // of WithMinHold
	handoff string          // of which lease it has the hand-off
	outer   Lease           // that it is asked under
	inside  string          // the outermost lease of the name by then

	end func(x Lease, t *turn, last int64) // instead of a release
}

// part is the id of the lease of one of the names.
func (t *turn) part(name string) string {
	if len(t.names) == 1 {
		return t.id
	}
	return t.id + "/" + name
}

// habit chooses a worker's next turn. There may be none for now.
type habit func(*rand.Rand) *turn

// habits are those of all goroutines of a worker.
func (w *worker) habits() []habit {
	var all []habit
	for i := range max(1, w.Alone) {
		all = append(all, func(random *rand.Rand) *turn { return w.alone(random, soloName(w.ID, i)) })
	}
	if w.Service == Sentinel || w.Service == Replicas {
		all = append(all, w.linger)
	}
	if w.Holders == 0 { // a run of many short calls
		return all
	}
	if w.Mute { // its turns keep others waiting, who hear of them by themselves
		return append(all, w.rush)
	}
	for range w.Holders {
		all = append(all, w.contend)
	}
	if w.Kinds {
		all = append(all, w.kinds()...)
	}
	return all
}

// kinds are those of the goroutines that want leases of other kinds, as far as the service has
// them. There are two where it matters that they meet in one process.
func (w *worker) kinds() []habit {
	all := []habit{w.gather, w.nest, w.herd}
	for range 2 {
		all = append(all, w.local)
	}
	if w.Service == Redlock {
		return all
	}
	if all = append(all, w.work); w.Service == Plain {
		return all
	}
	for range 2 {
		all = append(all, w.keep, w.read, w.stale, w.rush)
		if w.Service == One {
			all = append(all, w.seized)
		}
	}
	return append(all, w.limited, w.give, w.take)
}

// contend is what most do: one of the shared names, for a moment.
func (w *worker) contend(random *rand.Rand) *turn {
	return w.plan(random, 4, sharedNames[random.IntN(len(sharedNames))])
}

// rush takes a name for a moment, again and again: somebody always waits for it.
func (w *worker) rush(random *rand.Rand) *turn {
	t := w.plan(random, 0, busyName)
	t.try, t.patience = false, time.Second+time.Duration(random.IntN(2000))*time.Millisecond
	t.hold = time.Duration(3+random.IntN(10)) * time.Millisecond
	return t
}

// linger holds a name for longer than a split lasts.
func (w *worker) linger(random *rand.Rand) *turn {
	t := w.plan(random, 0, longName)
	t.hold = 10 * TTL
	return t
}

// alone keeps nobody waiting.
func (w *worker) alone(random *rand.Rand, name string) *turn {
	long := 40
	if w.Holders == 0 {
		long = 0
	}
	t := w.plan(random, long, name)
	t.try = t.try || random.IntN(2) == 0
	return t
}

// gather takes several names at once, or one of them.
func (w *worker) gather(random *rand.Rand) *turn {
	if random.IntN(3) == 0 {
		return w.plan(random, 4, manyNames[random.IntN(len(manyNames))])
	}
	t := w.plan(random, 4, manyNames...)
	t.try = false
	return t
}

// keep leaves the name taken for a while after the grant, or wants it in another way that
// cannot have the turn of one who did that.
func (w *worker) keep(random *rand.Rand) *turn {
	t := w.plan(random, 4, keptName)
	switch random.IntN(4) {
	case 0:
		t.opts = []core.Option{core.WithTTL(TTL / 2)}
	case 1:
		t.opts = []core.Option{core.WithLabel("unlike others")}
	case 2:
		t.keep, t.opts = keep, []core.Option{core.WithMinHold(keep)}
	}
	return t
}

// work does a job that is done once, though now and then it fails.
func (w *worker) work(random *rand.Rand) *turn {
	w.pause(time.Duration(random.IntN(60)) * time.Millisecond) // what is done is said at once
	t := w.plan(random, 4, fmt.Sprint(jobName, now()/int64(shift)))
	t.opts = []core.Option{core.WithDedup(window)}
	t.complete = random.IntN(3) > 0
	return t
}

// read shares a name with other readers, and now and then writes.
func (w *worker) read(random *rand.Rand) *turn {
	t := w.plan(random, 4, readName)
	if random.IntN(8) > 1 {
		t.mode, t.opts = Reader, []core.Option{core.WithShared()}
	}
	return t
}

// limited takes one of some places.
func (w *worker) limited(random *rand.Rand) *turn {
	t := w.plan(random, 15, limitedName)
	t.mode, t.opts = Limited, []core.Option{core.WithLimit(places)}
	return t
}

// plan chooses how a turn goes. Of a hundred, long ones hold a name for longer than its TTL.
func (w *worker) plan(random *rand.Rand, long int, names ...string) *turn {
	t := &turn{
		id: fmt.Sprintf("%s-%d", w.Life, w.calls.Add(1)), names: names,
		try:      random.IntN(4) == 0,
		patience: time.Duration(200+random.IntN(3000)) * time.Millisecond,
		hold:     time.Duration(random.IntN(8)) * time.Millisecond,
		deaf:     random.IntN(2) == 0,
		gone:     random.IntN(5) == 0,
	}
	if random.IntN(6) == 0 { // a caller in a hurry leaves in the middle
		t.patience = time.Duration(200+random.IntN(30_000)) * time.Microsecond
	}
	switch n := random.IntN(100); {
	case n < long:
		t.hold = TTL + time.Duration(random.IntN(int(TTL)))
	case n < 30:
		t.hold = time.Duration(random.IntN(80)) * time.Millisecond
	}
	return t
}

// simply is a turn of the probes: nothing goes wrong with it.
func (w *worker) simply(name string, patience time.Duration) *turn {
	return &turn{id: fmt.Sprintf("%s-%d", w.Life, w.calls.Add(1)), names: []string{name}, patience: patience}
}

func isJob(name string) bool { return strings.HasPrefix(name, jobName) }
