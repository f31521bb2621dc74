package fence

import "sync"

// Memory guards something that one process owns: a file, a device, a connection, a cache. It
// remembers fences as long as the process lives. The zero value is ready to use and has seen no
// fence. Its methods are safe for concurrent use.
//
// Each key that was ever written costs about 100 bytes plus its own length, until [Memory.Forget].
type Memory struct {
	mu    sync.Mutex // protects what follows
	keys  map[string]*guarded
	floor uint64 // what unknown keys have seen
}

type guarded struct {
	users int // that are in Do; protected by Memory.mu

	mu   sync.Mutex // held while something is written
	seen uint64     // written under both mutexes
}

// Do runs fn and returns its error. If a larger fence was seen for the key, Do returns a
// *[StaleError] instead, and fn does not run. While fn runs, no other Do for the key runs, so fn can
// read and write without interference. The fence counts as seen even if fn fails.
//
// fn must not call Do for the same key. A panic of fn passes through.
func (m *Memory) Do(key string, fence uint64, fn func() error) error {
	if fn == nil {
		return invalidf("fn: nil")
	}
	if err := check(key, fence); err != nil {
		return err
	}
	g := m.enter(key)
	defer m.leave(key, g)
	g.mu.Lock()
	defer g.mu.Unlock()
	if seen := m.advance(g, fence); seen > fence {
		return &StaleError{Key: key, Fence: fence, Seen: seen}
	}
	return fn()
}

// Forget drops every key whose largest fence is smaller than older, and returns the number of dropped
// keys. This is safe: from then on, for every key that is not remembered, fences smaller than older
// are refused, including those of the key's newest holder. So choose a value of older that is further
// back than any lease. With redislock and memlock, whose fences are microseconds since 1970 or a
// little more, that is
//
//	m.Forget(uint64(time.Now().Add(-time.Hour).UnixMicro()))
func (m *Memory) Forget(older uint64) (keys int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.floor = max(m.floor, older)
	for key, g := range m.keys {
		if g.users == 0 && g.seen < m.floor {
			delete(m.keys, key)
			keys++
		}
	}
	return keys
}

func (m *Memory) enter(key string) *guarded {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keys == nil {
		m.keys = make(map[string]*guarded)
	}
	g := m.keys[key]
	if g == nil {
		g = &guarded{}
		m.keys[key] = g
	}
	g.users++
	return g
}

// advance returns the largest fence that was seen, this one included. The caller holds g.mu.
func (m *Memory) advance(g *guarded, fence uint64) (seen uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g.seen = max(g.seen, m.floor, fence)
	return g.seen
}

func (m *Memory) leave(key string, g *guarded) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g.users--
	if g.users == 0 && g.seen <= m.floor { // the floor says as much
		delete(m.keys, key)
	}
}
