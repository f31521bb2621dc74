package zklock

import (
	"slices"

	"github.com/go-zookeeper/zk"
)

// watchFor tells when the one that a position waits for has gone, or has been granted the name. The first one that
// waits for any of a limited number to go hears of everybody who comes and goes; those behind it wait for that one. The
// error is zk.ErrNoNode if it has happened already.
func (t *call) watchFor(name string, queue []string, at int) (<-chan zk.Event, error) {
	dir := t.dir(name)
	awaited := blocker(queue, at)
	if awaited == "" && crowded(queue, at-1) {
		awaited = queue[at-1]
	}
	if awaited != "" {
		path := dir + "/" + awaited
		return t.watch(path, func() (fires <-chan zk.Event, err error) { _, _, fires, err = t.conn.GetW(path); return fires, err })
	}
	now := queue
	fires, err := t.watch(dir, func() (fires <-chan zk.Event, err error) {
		now, _, fires, err = t.conn.ChildrenW(dir)
		return fires, err
	})
	slices.SortFunc(now, before)
	if err == nil && !slices.Equal(now, queue) {
		return nil, zk.ErrNoNode
	}
	return fires, err
}

// watch is the watch on a path that there is, unless it has fired, or else a new one. All who wait for the same one share
// a watch: the client keeps every one that was ever asked for until it fires.
func (t *call) watch(path string, begin func() (<-chan zk.Event, error)) (fires <-chan zk.Event, err error) {
	t.mu.Lock()
	fires, there := t.watches[path]
	t.mu.Unlock()
	if there && !fired(fires) {
		return fires, nil
	}
	err = t.read(func() (err error) { fires, err = begin(); return err })
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, other := range t.watches { // those that nobody has asked for since
		if fired(other) {
			delete(t.watches, path)
		}
	}
	t.watches[path] = fires
	return fires, nil
}

// fired says whether a watch has: its channel has one event then, and is closed.
func fired(watch <-chan zk.Event) bool {
	select {
	case <-watch:
		return true
	default:
		return false
	}
}
