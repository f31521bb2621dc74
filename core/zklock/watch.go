package zklock

import (
	"slices"

	"github.com/go-zookeeper/zk"
)

// watch tells when the znode at path changes or goes. All who wait for the same one share a
// watch: the client keeps every one that was ever asked for until it fires.
func (t *trip) watch(path string) (<-chan zk.Event, error) {
	if fires := t.watched(path); fires != nil {
		return fires, nil
	}
	var fires <-chan zk.Event
	err := t.read(func() (err error) {
		_, _, fires, err = t.conn.GetW(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.remember(path, fires)
	return fires, nil
}

// watchAll tells when anybody comes to the line in dir, or goes. The error is zk.ErrNoNode if that has happened
// since the line was read.
func (t *trip) watchAll(dir string, line []string) (<-chan zk.Event, error) {
	if fires := t.watched(dir); fires != nil { // it is older than the line
		return fires, nil
	}
	var now []string
	var fires <-chan zk.Event
	err := t.read(func() (err error) {
		now, _, fires, err = t.conn.ChildrenW(dir)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.remember(dir, fires)
	slices.SortFunc(now, before)
	if !slices.Equal(now, line) {
		return nil, zk.ErrNoNode
	}
	return fires, nil
}

func (s *store) remember(path string, fires <-chan zk.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	s.watches[path] = fires
}

// watched is the watch on path that there is, unless it has fired: its channel has one
// event then, and is closed.
func (s *store) watched(path string) <-chan zk.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	fires := s.watches[path]
	if fired(fires) {
		delete(s.watches, path)
		return nil
	}
	return fires
}

func fired(watch <-chan zk.Event) bool {
	select {
	case <-watch:
		return true
	default:
		return false
	}
}

// sweep forgets watches that have fired and that nobody has asked for since.
func (s *store) sweep() {
	for path, fires := range s.watches {
		if fired(fires) {
			delete(s.watches, path)
		}
	}
}
