// Package look finds out again and again who holds what, at a bounded cost: for those who watch.
//
// To find all names is to walk through them, and in Redis that means through all keys of the database,
// whatever the pattern. So walks take a twentieth of the time at most: after one of a second there is none
// for 19 seconds. In between, the names that are known are looked at one by one, and no new one is found.
// Up to some 20,000 keys in Redis a walk takes less than 50 ms, and there is one each second.
package look

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// Source is what a Locker can tell.
type Source interface {
	Inspect(ctx context.Context, name string) (inspect.LeaseInfo, error)
	Leases(ctx context.Context, prefix string) iter.Seq2[inspect.LeaseInfo, error]
}

const (
	share     = 20                     // walks take one part in so many of the time
	patience  = 300 * time.Millisecond // for a walk under way, before the known names are looked at
	mostNames = 500                    // looked at one by one in a look
	atOnce    = 8
	answerIn  = 5 * time.Second // or the lock service does not answer

	// probe is looked at while no name is known, to find out whether anybody answers: a walk that hangs
	// says nothing.
	probe = "holdfast.ready"

	mostFailed = time.Second // that a walk which has failed counts for
)

// Looker looks. Its methods may not be called by two goroutines at once.
type Looker struct {
	source Source
	prefix string
	keep   func(name string) bool

	walk  *walk // under way; nil if there is none
	begin time.Time
	took  time.Duration
	next  string // the name after which the next look at single names begins

	known map[string]inspect.LeaseInfo
	whole bool // a walk has ended
}

// New returns a Looker for the names that begin with prefix, and that keep keeps.
func New(source Source, prefix string, keep func(name string) bool) *Looker {
	return &Looker{source: source, prefix: prefix, keep: keep, known: make(map[string]inspect.LeaseInfo)}
}

// Picture is what a look has found.
type Picture struct {
	Infos []inspect.LeaseInfo // by name; each once
	// Whole says that all names have been found. Otherwise the first walk is still under way.
	Whole bool
	// Every is the time between two walks; a name that is taken may be missing for so long.
	Every time.Duration
}

// Look asks the lock service. ctx limits it, and the walk that it may leave under way for the next look.
// After an error the names of earlier looks are returned too.
func (l *Looker) Look(ctx context.Context) (Picture, error) {
	l.forget()
	if l.walk == nil && time.Since(l.begin) >= l.took*share {
		l.begin = time.Now()
		l.walk = l.startWalk(ctx)
	}
	var err error
	if l.await() {
		err, l.took = l.walk.err, l.walk.took
		if err != nil { // an outage says nothing about the cost of a walk
			l.took = min(l.took, mostFailed)
		}
		l.walk = nil
	} else if err = l.single(ctx); err != nil && l.walk != nil {
		l.walk.cancel() // it waits for the same service, and may do so for ever
		l.walk.stopped = true
	}
	infos := slices.SortedFunc(maps.Values(l.known), func(a, b inspect.LeaseInfo) int { return cmp.Compare(a.Name, b.Name) })
	return Picture{infos, l.whole, l.took * share}, err
}

// walk is one way through all names.
type walk struct {
	cancel  context.CancelFunc
	stopped bool // by us: what it says does not count
	ended   chan struct{}

	mu    sync.Mutex // protects what follows
	found map[string]inspect.LeaseInfo

	// Known when it has ended. It may have ended long before somebody looks again.
	err  error
	took time.Duration
}

// forget makes room for a new walk behind one that was stopped.
func (l *Looker) forget() {
	if l.walk == nil || !l.walk.stopped {
		return
	}
	select {
	case <-l.walk.ended:
		l.walk, l.begin = nil, time.Time{}
	default: // the client does not heed its context
	}
}

func (l *Looker) startWalk(ctx context.Context) *walk {
	ctx, cancel := context.WithCancel(ctx)
	w := &walk{cancel: cancel, ended: make(chan struct{}), found: make(map[string]inspect.LeaseInfo)}
	began := time.Now()
	go func() {
		defer close(w.ended)
		defer cancel()
		defer func() { w.took = time.Since(began) }()
		for info, err := range l.source.Leases(ctx, l.prefix) {
			if err != nil {
				w.err = err
				return
			}
			if l.keep(info.Name) {
				w.mu.Lock()
				w.found[info.Name] = info
				w.mu.Unlock()
			}
		}
	}()
	return w
}

// await gives a walk some time, and takes over what it has found. It says whether there was one that has
// ended.
func (l *Looker) await() (ended bool) {
	w := l.walk
	if w == nil || w.stopped {
		return false
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.ended:
		ended = true
	case <-timer.C:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if ended && w.err == nil {
		l.known, l.whole = w.found, true
		return true
	}
	maps.Copy(l.known, w.found)
	return ended
}

// single looks at names that are known, one by one; at others with the next call if there are many.
func (l *Looker) single(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	names := slices.Sorted(maps.Keys(l.known))
	if len(names) == 0 {
		names = []string{probe}
	}
	at, _ := slices.BinarySearch(names, l.next)
	names = slices.Concat(names[at:], names[:at])
	names = names[:min(len(names), mostNames)]
	infos := make([]inspect.LeaseInfo, len(names))
	errs := make([]error, len(names))
	var all sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i, name := range names {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			infos[i], errs[i] = l.source.Inspect(ctx, name)
		})
	}
	all.Wait()
	for i, name := range names {
		if errs[i] != nil {
			return errs[i]
		}
		if l.next = name + "\x00"; infos[i].Held && l.keep(name) {
			l.known[name] = infos[i]
		} else {
			delete(l.known, name)
		}
	}
	return nil
}

// Close waits for a walk under way. End the context of the looks first.
func (l *Looker) Close() {
	if l.walk != nil {
		<-l.walk.ended
	}
}
