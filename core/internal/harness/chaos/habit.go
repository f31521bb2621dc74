//go:build linux

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// What workers ask for. Each has a name of its own besides, which nobody else asks for.
const (
	keptName    = "kept"    // with WithMinHold, and by others
	readName    = "read"    // by readers and writers
	limitedName = "limited" // by so many as places says
	jobName     = "job-"    // and a number: with WithDedup
	passedName  = "passed"  // goes on in other processes, by hand-offs
)

var (
	sharedNames = []string{"a", "b"} // one holder each
	manyNames   = []string{"p", "q"} // taken together, or one of them
	otherNames  = append([]string{keptName, readName, limitedName, passedName}, manyNames...)
)

const (
	places = 2
	keep   = 400 * time.Millisecond // of WithMinHold
	window = 3 * time.Second        // of WithDedup
	shift  = 2 * time.Second        // after it there is another job
)

// soloName is what a worker has for itself.
func soloName(id string) string { return "solo-" + id }

func isJob(name string) bool { return strings.HasPrefix(name, jobName) }

// together says whether several may hold a name at a time.
func together(name string) bool { return name == readName || name == limitedName }

// habit chooses a worker's next action. There may be none for now.
type habit func(*rand.Rand) *action

// habits are those of the goroutines of a worker: all that the service can. There are two where it matters that they meet in
// one process.
func (w *worker) habits() []habit {
	all := []habit{w.alone, w.contend, w.contend, w.contend, w.gather}
	add := func(can bool, some ...habit) {
		if can {
			all = append(all, some...)
		}
	}
	add(w.can.Dedup, w.work)
	for range 2 {
		add(w.can.Keep, w.keep)
		add(w.can.Shared, w.read)
		add(w.can.Limit, w.limited)
	}
	add(w.can.Detach, w.give, w.take)
	return all
}

// contend is what most do: one of the shared names, for a moment.
func (w *worker) contend(random *rand.Rand) *action {
	return w.plan(random, 4, sharedNames[random.IntN(len(sharedNames))])
}

// alone keeps nobody waiting.
func (w *worker) alone(random *rand.Rand) *action {
	a := w.plan(random, 40, soloName(w.ID))
	a.try = a.try || random.IntN(2) == 0
	return a
}

// gather takes several names at once, or one of them.
func (w *worker) gather(random *rand.Rand) *action {
	if random.IntN(3) == 0 {
		return w.plan(random, 4, manyNames[random.IntN(len(manyNames))])
	}
	a := w.plan(random, 4, manyNames...)
	a.try = false
	return a
}

// keep leaves the name taken for a while after the grant, or wants it in another way that cannot have the turn of one who
// did that.
func (w *worker) keep(random *rand.Rand) *action {
	a := w.plan(random, 4, keptName)
	switch random.IntN(4) {
	case 0:
		a.opts = []core.Option{core.WithTTL(w.ttl + 100*time.Millisecond)}
	case 1:
		a.opts = []core.Option{core.WithLabel("unlike others")}
	case 2:
		a.keep, a.opts = keep, []core.Option{core.WithMinHold(keep)}
	}
	return a
}

// work does a job that is done once, though now and then it fails.
func (w *worker) work(random *rand.Rand) *action {
	w.pause(time.Duration(random.IntN(60)) * time.Millisecond) // what is done is said at once
	a := w.plan(random, 4, fmt.Sprint(jobName, now()/int64(shift)))
	a.opts = []core.Option{core.WithDedup(window)}
	a.complete = random.IntN(3) > 0
	return a
}

// read shares a name with other readers, and now and then writes.
func (w *worker) read(random *rand.Rand) *action {
	a := w.plan(random, 4, readName)
	if random.IntN(3) > 0 {
		a.mode, a.opts = Reader, []core.Option{core.WithShared()}
	}
	return a
}

// limited takes one of some places, and now and then all of them.
func (w *worker) limited(random *rand.Rand) *action {
	if random.IntN(4) == 0 {
		return w.plan(random, 4, limitedName)
	}
	a := w.plan(random, 8, limitedName)
	a.mode, a.opts = Limited, []core.Option{core.WithLimit(places)}
	return a
}

// plan chooses how an action goes. Of a hundred, long ones hold a name for longer than its TTL.
func (w *worker) plan(random *rand.Rand, long int, names ...string) *action {
	a := w.simply(names[0], time.Duration(200+random.IntN(3000))*time.Millisecond)
	a.names, a.try, a.deaf, a.gone = names, random.IntN(4) == 0, random.IntN(2) == 0, random.IntN(5) == 0
	a.hold = time.Duration(random.IntN(8)) * time.Millisecond
	if random.IntN(6) == 0 { // a caller in a hurry leaves in the middle
		a.patience = time.Duration(200+random.IntN(30_000)) * time.Microsecond
	}
	switch n := random.IntN(100); {
	case n < long:
		a.hold = w.ttl + time.Duration(random.IntN(int(w.ttl)))
	case n < 30:
		a.hold = time.Duration(random.IntN(80)) * time.Millisecond
	}
	return a
}

// handoffLife is for how long a detached name is kept for who has the hand-off.
func (w *worker) handoffLife() time.Duration { return w.ttl * 3 / 10 }

// give takes a name, and leaves it to another process.
func (w *worker) give(random *rand.Rand) *action {
	a := w.plan(random, 4, passedName)
	if random.IntN(4) > 0 {
		w.passOn(random, a)
	}
	return a
}

// take comes for a name by a hand-off, and leaves it to the next one now and then.
func (w *worker) take(random *rand.Rand) *action {
	reply := w.post(w.stop, mailPath, nil)
	if reply == nil {
		return nil
	}
	defer func() { _ = reply.Close() }()
	var l letter
	if json.NewDecoder(reply).Decode(&l) != nil {
		return nil
	}
	handoff, err := core.ParseHandoff(l.Handoff)
	if err != nil {
		panic(err) // it is what Encode has written
	}
	a := w.plan(random, 4, passedName)
	a.giver, a.by = l.From, handoff
	if random.IntN(4) == 0 {
		w.passOn(random, a)
	}
	return a
}

// passOn has an action end with Detach. One comes for the name, or two at a time, or nobody; and now and then not before the
// hand-off's time is over.
func (w *worker) passOn(random *rand.Rand, a *action) {
	l := letter{From: a.id, Copies: [...]int{0, 1, 1, 1, 1, 2, 2, 2}[random.IntN(8)]}
	if random.IntN(3) == 0 {
		l.After = time.Duration(random.IntN(int(2 * w.handoffLife())))
	}
	a.gone = false // Detach has nothing to do with a ctx that has ended
	a.end = func(x lease, a *action, last int64) {
		var handoff core.Handoff
		own := x.(*core.Lease)
		err := w.finish(a, Event{Last: last, Keep: int64(w.handoffLife())}, func(ctx context.Context) (err error) {
			handoff, err = own.Detach(ctx, w.handoffLife())
			return err
		})
		if err != nil { // it is over all the same, and nobody has its hand-off
			return
		}
		if at := now(); own.Err() == nil || own.Context().Err() == nil { // no use of it is right any more
			w.note(a, Event{Kind: Believed, Last: at, Until: at})
		}
		l.Handoff = handoff.Encode()
		body, _ := json.Marshal(l) // of plain fields
		if reply := w.post(context.Background(), mailPath, body); reply != nil {
			_ = reply.Close() // a letter may get lost
		}
	}
}
