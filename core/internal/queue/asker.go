package queue

// First is for the asker: for whom to ask now, and whether others wait behind him. If nobody waits, it is over with the asker. broken breaks off the
// round that begins now.
func (l *Line[W, H, N]) First(broken func()) (of W, behind, ok bool) {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	if l.first == nil {
		l.over()
		return of, false, false
	}
	l.broken = broken
	return l.first.Of, l.first != l.last, true
}

// over says that the asker ends.
func (l *Line[W, H, N]) over() {
	l.asker, l.broken = false, nil
	l.tell()
	l.prune()
}

// Give is for the asker: something was granted, and take makes a hold of it for whoever is first now, or says that it does not suit. With
// anybody, it goes to the first whom it suits. Once it is given, it is over with the asker, unless others can hold the name too.
func (l *Line[W, H, N]) Give(anybody bool, take func(W) (H, bool)) (given bool) {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	for w := l.first; w != nil; w = w.next {
		if h, ok := take(w.Of); ok {
			l.send(w, Word[H]{Hold: h})
			if !l.together {
				l.hold(h)
				l.over()
			}
			return true
		}
		if !anybody {
			return false
		}
	}
	return false
}

// Pass is for the end of a hold in the line for key: next makes it the hold of the first waiter, or says that it may not be passed on. If
// it is not passed, the name stays taken until Vacate. With early, the asker begins before that: start is its line.
func (t *Table[W, H, N]) Pass(key string, h H, early bool, next func(W) bool) (passed bool, start *Line[W, H, N]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[key]
	if l == nil || l.first == nil || !l.held || l.has != h {
		return false, nil
	}
	w := l.first
	if next(w.Of) {
		l.send(w, Word[H]{Hold: h})
		return true, nil
	}
	if early {
		l.asker = true
		return false, l
	}
	return false, nil
}

// Vacate says that h does not have the name any more, and that all who have worked under it were told. start is the line whose asker
// begins, if one does.
func (t *Table[W, H, N]) Vacate(key string, h H) (start *Line[W, H, N]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[key]
	if l == nil || l.has != h { // others have had it since, or can have it at the same time
		return nil
	}
	l.held = false
	l.tell()
	if !l.wake() {
		return nil
	}
	return l
}

// Fail ends the wait of everybody for whom judge has an error.
func (l *Line[W, H, N]) Fail(judge func(W) error) {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	for w := l.first; w != nil; {
		next := w.next
		if err := judge(w.Of); err != nil {
			l.send(w, Word[H]{Err: err})
		}
		w = next
	}
}

// Tell has everybody who watches told of the last answer. If nobody waits any more, it is none: the name may have come free since, and
// nobody asks for it.
func (l *Line[W, H, N]) Tell(n N) {
	l.table.mu.Lock()
	defer l.table.mu.Unlock()
	if l.first == nil {
		return
	}
	l.news, l.known = n, true
	l.tell()
}

func (l *Line[W, H, N]) tell() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Look is what a line is like.
type Look[H comparable, N any] struct {
	Has     H               // who has it, or had it last; zero if nobody did
	Held    bool            // somebody of this process has the name
	News    N               // if Known
	Known   bool            // there was an answer, for those who ask or wait now
	Changed <-chan struct{} // closed when any of this is different; nil if nobody has the name or asks
}

// Watch says what the line for key is like.
func (t *Table[W, H, N]) Watch(key string) (v Look[H, N]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.lines[key]; l != nil {
		v = l.watch()
	}
	return v
}

func (l *Line[W, H, N]) watch() Look[H, N] {
	if l.changed == nil {
		l.crowded()
		l.changed = make(chan struct{})
	}
	return Look[H, N]{l.has, l.held, l.news, l.known, l.changed}
}

// Waiting says how many wait in all lines, and is for tests.
func (t *Table[W, H, N]) Waiting() (n, lines int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lines {
		for w := l.first; w != nil; w = w.next {
			n++
		}
	}
	return n, len(t.lines)
}
