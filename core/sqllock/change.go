package sqllock

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/share"
)

const (
	// maxSwaps is how often a row is read again that others write at the same time. Each time one of them
	// has got on.
	maxSwaps = 100
	// maxTogether is how many changes go into one write.
	maxTogether = 64
)

// errStandby is that of a read which does not count: by another clock than that of the write that would follow, and late.
var errStandby = errors.New("it has answered a read")

var errBusy = errors.New("sqllock: the row is always written by others")

// changes are what the goroutines of a process want to do to rows. For each name one of them is at work. What
// gathers meanwhile is done to the row together, and written at once: so goroutines of one process never make
// each other read a row again.
type changes struct {
	mu sync.Mutex           // protects the field below
	m  map[string][]*change // who waits; an entry for each name that somebody is at work on
}

// change is one decision about a row.
type change struct {
	ctx    context.Context
	claim  driver.Claim
	decide func(r *row)
	begun  bool // protected by changes.mu
	done   chan error
}

// change has decide change the row of c's name, and returns when that is written. If it returns an error, decide
// may still be running: its caller must not look at what it has said.
func (s *Store) change(ctx context.Context, c driver.Claim, decide func(r *row)) error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return err
	}
	x := &change{ctx: ctx, claim: c, decide: decide, done: make(chan error, 1)}
	if s.changes.first(x) {
		defer s.changes.next(s, c.Name)
		return s.apply(ctx, []*change{x})
	}
	timer := time.NewTimer(share.Stuck)
	defer timer.Stop()
	select {
	case err := <-x.done:
		return err
	case <-timer.C: // who is at work may be stuck, on a connection that is broken
	case <-ctx.Done():
	}
	if s.changes.withdraw(x) {
		if err := driver.NotSent(ctx.Err()); err != nil {
			return err
		}
		return s.apply(ctx, []*change{x})
	}
	select {
	case err := <-x.done:
		return err
	case <-ctx.Done():
		return errors.Join(share.ErrLeft, ctx.Err())
	}
}

// first says whether x is to be done at once. Otherwise it waits.
func (q *changes) first(x *change) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.m == nil {
		q.m = make(map[string][]*change)
	}
	waiting, busy := q.m[x.claim.Name]
	if busy {
		waiting = append(waiting, x)
	}
	q.m[x.claim.Name] = waiting
	return !busy
}

// withdraw takes x back, unless somebody is at work on it.
func (q *changes) withdraw(x *change) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if x.begun {
		return false
	}
	name := x.claim.Name
	q.m[name] = slices.DeleteFunc(q.m[name], func(y *change) bool { return x == y })
	return true
}

// next has somebody do what has gathered for a name. Only its callers wait for that goroutine.
func (q *changes) next(s *Store, name string) {
	if batch := q.take(name); batch != nil {
		go func() {
			for ; batch != nil; batch = q.take(name) {
				ctx, cancel := share.Outlive(batch, func(x *change) context.Context { return x.ctx })
				err := s.apply(ctx, batch)
				cancel()
				for _, x := range batch {
					x.done <- err
				}
			}
		}()
	}
}

// take returns what is done next: one change that needs a dedup marker, or several that do not.
func (q *changes) take(name string) []*change {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.m[name]
	if len(waiting) == 0 {
		delete(q.m, name)
		return nil
	}
	n := 0
	for n < min(len(waiting), maxTogether) && waiting[n].claim.Dedup == 0 {
		n++
	}
	n = max(n, 1)
	batch := waiting[:n:n]
	q.m[name] = waiting[n:]
	for _, x := range batch {
		x.begun = true
	}
	return batch
}

// apply reads a row, does to it what the batch wants, and writes it if it is still as it was read. Otherwise it
// begins again. Nothing is locked between the two statements, so a process that stops there holds nobody up.
//
// What was decided stays right if the row has not changed: a TTL that is over stays over, and one that was set
// began when the row was read. The error of a read is certain: nothing was executed.
func (s *Store) apply(ctx context.Context, batch []*change) error {
	c := batch[0].claim
	for n := 1; ; n++ {
		began := time.Now()
		old, err := s.load(ctx, c)
		if err != nil {
			return driver.NotSent(err)
		}
		if old.standby {
			s.retire(ctx)
			return readOnly.of(errStandby)
		}
		r := old
		if err := r.settle(); err != nil {
			return driver.NotSent(err)
		}
		for _, x := range batch {
			x.decide(&r)
		}
		written := !r.changed
		if r.changed {
			if len(batch) == 1 && s.queues(&old, &r) {
				written, err = s.writeQueue(ctx, &old, &r, c)
			} else {
				written, err = s.write(ctx, &old, &r, c)
			}
			if err != nil {
				return err
			}
		}
		if written {
			if r.telling {
				_ = s.notify(ctx, r.first()) // who is not told looks by itself
			}
			return nil
		}
		if n == maxSwaps {
			return driver.NotSent(errBusy)
		}
		pause := time.NewTimer(rand.N(time.Since(began)/2 + time.Millisecond)) //nolint:gosec // G404: jitter is no secret
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return driver.NotSent(ctx.Err())
		}
	}
}

// load reads the row of c's name and, if c asks for it, the dedup marker.
func (s *Store) load(ctx context.Context, c driver.Claim) (row, error) {
	marker := c.Name
	if c.Dedup > 0 {
		marker = markerOf(c)
	}
	var r, found row
	err := s.rows(ctx, s.do.read, []any{c.Name, marker}, answer{
		begin: func() { found = row{name: c.Name} },
		row: func() {
			found.now, found.standby = r.now, r.standby
			switch {
			case r.name == c.Name:
				r.there, r.done = true, found.done
				found = r
			case r.name != "" && r.expires > r.now:
				label := r.label
				found.done = &label
			}
		},
		dest: append(r.dest(), &r.standby),
	})
	return found, err
}

// dest is where a row's columns go.
func (r *row) dest() []any {
	return []any{&r.now, &r.name, &r.token, &r.label, &r.fence, &r.expires, &r.turn, &r.raw}
}

// queues says whether r differs from old in its queue only.
func (s *Store) queues(old, r *row) bool {
	return s.do.queue.text != "" && old.there && !r.durable && !r.marks
}

// writeQueue is write for what differs in the queue only, of one claim. Who owns the name may have changed meanwhile, as long as that is
// not the claim's token: a row on which others write all the time, and wait for the disk, would never be as it was read. If
// the name has come free, nobody has told an entry that was not there yet, or was behind one that leaves: so c reads the row
// again if it is the first, and tells the one that is.
func (s *Store) writeQueue(ctx context.Context, old, r *row, c driver.Claim) (written bool, err error) {
	text, err := r.encodeWithin(s.roomForState())
	if err != nil {
		return false, driver.NotSent(err)
	}
	args := []any{r.name, r.head(), text, old.raw, c.Token}
	if s.dialect != Postgres { // where waiters look again by themselves
		n, err := s.changed(ctx, s.do.queue, args...)
		return n > 0, err
	}
	var said string
	n, err := s.once(ctx, s.do.queue, args, answer{dest: []any{&said}})
	free := strings.HasSuffix(said, postgresFree)
	if free {
		r.vacate()
	}
	return n > 0 && (!free || r.standing(c.Token) != 0), err
}

// roomForState is how long a state can be. MySQL cuts off what is longer, unless its mode is strict.
func (s *Store) roomForState() int {
	if s.dialect == MySQL {
		return maxState
	}
	return math.MaxInt
}

// write puts r in the place of old. It leaves c's marker if r says so. It says whether the row was still as old has it.
func (s *Store) write(ctx context.Context, old, r *row, c driver.Claim) (written bool, err error) {
	text, err := r.encodeWithin(s.roomForState())
	if err != nil {
		return false, driver.NotSent(err)
	}
	if !old.there || r.free() {
		r.fence = max(r.fence, r.now) // so that nobody takes the row for one that is out of use
	}
	if r.marks {
		r.fence++ // whoever has read the row before has seen no marker, and must not find it as it was
	}
	args := []any{r.name, r.token, r.label, r.fence, r.expires, r.turn, r.head(), text}
	stmt := s.do.create
	if old.there {
		stmt, args = s.do.swap, append(args, old.token, old.fence, old.expires, old.raw, old.turn)
		if r.marks {
			stmt, args = s.do.swapMark, append(args, markerOf(c), c.Label, c.Dedup.Microseconds())
		}
	}
	n, err := s.changed(ctx, stmt, args...)
	return n > 0, err
}
