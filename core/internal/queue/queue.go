// Package queue knows who of this process asks for a name, has it, and waits for it.
//
// It does nothing by itself: each method is one step under one mutex, and says what its caller has to do. So every
// order of steps can be played. What a waiter, a hold and the news are, is not its concern.
//
// At most one asks for a name that is held alone: a call that makes an attempt of its own while nobody waits, or the asker,
// who asks for all who wait. Always: if somebody waits, somebody asks or holds, or has just been told to begin.
package queue

import (
	"strings"
	"sync"
)

// Table has a line for each name that somebody asks for, has or waits for. If there are several of one name, the keys of all but one
// have a NUL behind the name.
type Table[W any, H comparable, N any] struct {
	mu    sync.Mutex // protects everything in all lines
	lines map[string]*Line[W, H, N]
	kin   map[string][]string // by what is before the first NUL of a key: the keys of lines that have one
	empty crowd[W, H, N]      // of all lines where nobody waits: never written
}

// Line is the line of one name. A pointer to it is good for whoever asks, has or waits there.
type Line[W any, H comparable, N any] struct {
	table    *Table[W, H, N]
	key      string
	together bool  // others can hold the name at the same time: the line does not know who does
	asker    bool  // asks
	held     bool  // and has is who
	known    bool  // there was an answer, for those who wait
	calls    int32 // calls that ask for themselves; one at most, unless together
	has      H     // or who had it last

	*crowd[W, H, N]
}

// crowd is what a line needs only once somebody waits or watches there: a process can hold many names, and most of them alone.
type crowd[W any, H comparable, N any] struct {
	first   *Waiter[W, H, N]
	last    *Waiter[W, H, N]
	broken  func()        // breaks the asker's round off; nil between rounds
	news    N             // the last answer
	outcome N             // of the last attempt of a call's own, for those who watched it
	changed chan struct{} // closed when there is another one; nil if nobody watches
}

// crowded gives l a crowd of its own, which comes before all writing to it.
func (l *Line[W, H, N]) crowded() {
	if l.crowd == &l.table.empty {
		l.crowd = new(crowd[W, H, N])
	}
}

// Waiter is one call in a line. It can be used again once it was told a word, or has left.
type Waiter[W any, H comparable, N any] struct {
	Of   W
	Told chan Word[H] // of size two, made as it first waits; a word ends the wait, unless it says to look

	line       *Line[W, H, N] // nil if it does not wait
	next, prev *Waiter[W, H, N]
}

// Word is what ends a wait: a hold, or an error. Or it says to look whether the call still waits; then it does not end the wait.
type Word[H comparable] struct {
	Hold H
	Err  error
	Look bool
}

// New returns an empty table.
func New[W any, H comparable, N any]() *Table[W, H, N] {
	return &Table[W, H, N]{lines: make(map[string]*Line[W, H, N]), kin: make(map[string][]string)}
}

// Enter is for a call that may wait. Either it waits, as w, and has is who has the name, if somebody of this process does. Or it asks
// for itself: Granted, Refused or GaveUp follows.
func (t *Table[W, H, N]) Enter(key string, together bool, w *Waiter[W, H, N]) (l *Line[W, H, N], waits bool, has H) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l = t.open(key, together)
	if l.free() {
		l.calls++
		return l, false, has
	}
	if l.held {
		has = l.has
	}
	w.join(l, l.last)
	return l, true, has
}

// join has w wait in l behind prev, first of all if that is nil.
func (w *Waiter[W, H, N]) join(l *Line[W, H, N], prev *Waiter[W, H, N]) {
	l.crowded()
	w.line, w.prev, w.next = l, prev, l.first
	if prev == nil {
		l.first = w
	} else {
		w.next, prev.next = prev.next, w
	}
	if w.next == nil {
		l.last = w
	} else {
		w.next.prev = w
	}
	if w.Told == nil {
		w.Told = make(chan Word[H], 2)
	}
}

// Try is for a call that does not wait. If asks is true, it asks for itself, and Granted or GaveUp follows. Otherwise somebody of this
// process has the name, or asks for it, as v tells.
func (t *Table[W, H, N]) Try(key string, together bool) (l *Line[W, H, N], v Look[H, N], asks bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l = t.open(key, together)
	if !together && !l.free() {
		v = l.watch()
		return l, v, false
	}
	l.calls++
	return l, v, true
}

// free says that a call may ask for itself. The caller holds the mutex, as for all that follow without a capital.
func (l *Line[W, H, N]) free() bool {
	return !l.asker && !l.held && (l.calls == 0 || l.together) // so nobody waits, either
}

// Granted says that a call that asked for itself has what begin makes. begin is called in the same step, so that what ends at once is
// not vacated before it is here. Those who wait have an asker, or wait for h.
func (l *Line[W, H, N]) Granted(begin func() H) (h H) {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	l.calls--
	h = begin()
	if !l.together {
		l.hold(h)
	}
	l.prune()
	return h
}

// hold says that h has the name. What was said of it before is old.
func (l *Line[W, H, N]) hold(h H) {
	l.held, l.has, l.known = true, h, false
	l.tell()
}

// Refused says that a call that asked for itself goes on as w, which waits first of all.
func (l *Line[W, H, N]) Refused(w *Waiter[W, H, N]) (start bool) {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	l.calls--
	w.join(l, nil)
	return l.wake()
}

// GaveUp says that a call that asked for itself goes, with this outcome.
func (l *Line[W, H, N]) GaveUp(outcome N) (start bool) {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	l.calls--
	if l.changed != nil {
		l.outcome = outcome
	}
	l.tell()
	return l.wake()
}

// Outcome is of the last call that asked for itself while somebody watched, and gave up; zero if there was none. Whoever has watched l can
// ask for it even when nobody needs l any more.
func (l *Line[W, H, N]) Outcome() N {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	return l.outcome
}

// Leave takes w out, because its call goes. If it was told a word in the meantime, that is for the caller to pass on. If nobody
// waits any more, broken has to be called: it ends the asker's round.
func (w *Waiter[W, H, N]) Leave(t *Table[W, H, N]) (word Word[H], broken func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.line == nil {
		for word = <-w.Told; word.Look; {
			word = <-w.Told
		}
		return word, nil
	}
	l := w.line
	l.unlink(w) // what says to look may be there still: it does so once more as it waits again
	if l.first == nil {
		broken, l.broken = l.broken, nil
		l.known = false // the asker only clears up from now on
	}
	return word, broken
}

// wake says to begin the asker, if somebody waits, and nobody asks or holds. It forgets a line that nobody needs.
func (l *Line[W, H, N]) wake() (start bool) {
	start = l.first != nil && !l.asker && !l.held
	l.asker = l.asker || start
	l.prune()
	return start
}

func (l *Line[W, H, N]) unlink(w *Waiter[W, H, N]) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.line, w.next, w.prev = nil, nil, nil
}

// send ends the wait of w.
func (l *Line[W, H, N]) send(w *Waiter[W, H, N], word Word[H]) {
	l.unlink(w)
	w.Told <- word // never blocks: it is the only one, and another one only says to look
}

// Poke tells all those to look of whom who says so, unless they are about to look.
func (t *Table[W, H, N]) Poke(who func(W) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lines {
		for w := l.first; w != nil; w = w.next {
			if who(w.Of) && len(w.Told) == 0 { // nobody else sends
				w.Told <- Word[H]{Look: true}
			}
		}
	}
}

func (t *Table[W, H, N]) open(key string, together bool) *Line[W, H, N] {
	l := t.lines[key]
	if l == nil {
		l = &Line[W, H, N]{table: t, key: key, together: together, crowd: &t.empty}
		t.lines[key] = l
		if name, _, kin := strings.Cut(key, "\x00"); kin {
			t.kin[name] = append(t.kin[name], key)
		}
	}
	return l
}

// prune forgets a line that nobody needs.
func (l *Line[W, H, N]) prune() {
	if !l.asker && !l.held && l.calls == 0 { // then nobody waits
		delete(l.table.lines, l.key)
		l.table.forget(l.key)
	}
}
