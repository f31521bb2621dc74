package queue

import (
	"slices"
	"strings"
)

// Seen is what a line is like for somebody who only looks.
type Seen[W any, H comparable] struct {
	Key  string
	Has  H // if Held
	Held bool
	Wait []W // first come first
}

// Of returns the lines of a name. It looks at no others.
func (t *Table[W, H, N]) Of(name string) (all []Seen[W, H]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range append(slices.Clone(t.kin[name]), name) {
		if l := t.lines[key]; l != nil {
			all = append(all, l.seen())
		}
	}
	return all
}

// All returns the lines of the names that begin with prefix. Between lines it lets others have the table, so it is no snapshot.
func (t *Table[W, H, N]) All(prefix string) (all []Seen[W, H]) {
	const some = 64
	n := 0
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, l := range t.lines {
		if n++; n%some == 0 { // l may be gone then, and nobody has it or waits
			t.mu.Unlock()
			t.mu.Lock()
		}
		if strings.HasPrefix(key, prefix) {
			all = append(all, l.seen())
		}
	}
	return all
}

func (l *Line[W, H, N]) seen() Seen[W, H] {
	s := Seen[W, H]{Key: l.key, Has: l.has, Held: l.held}
	for w := l.first; w != nil; w = w.next {
		s.Wait = append(s.Wait, w.Of)
	}
	return s
}

// forget drops the key of a line that is forgotten. The caller holds the mutex.
func (t *Table[W, H, N]) forget(key string) {
	name, _, kin := strings.Cut(key, "\x00")
	if !kin {
		return
	}
	if t.kin[name] = slices.DeleteFunc(t.kin[name], func(k string) bool { return k == key }); len(t.kin[name]) == 0 {
		delete(t.kin, name)
	}
}
