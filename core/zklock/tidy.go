package zklock

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// The znode of a name is a container, which the server deletes when it has been empty for a while. But it does so once a
// minute, and deletes 10,000 a minute at most: names that are used once would grow without bound. So a Store deletes
// the znode itself, once it has not used the name for a while. Those of a process that dies are left to the server.

// lingers is how long the znode of a name stays at least after its last use. A name that is used again before that costs
// no write more.
const lingers = time.Second

// atOnce is how many are deleted at the same time.
const atOnce = 32

// unused has the znode of a name deleted if nobody uses it soon.
func (s *Store) unused(name string) {
	s.set(func() {
		s.idle[name] = time.Now()
		s.arm()
	})
}

// arm has idle names looked after in a while. The caller has the mutex.
func (s *Store) arm() {
	if s.armed || len(s.idle) == 0 {
		return
	}
	s.armed = true
	time.AfterFunc(lingers, func() {
		s.tidy(lingers)
		s.set(func() {
			s.armed = false
			s.arm()
		})
	})
}

// tidy deletes the znodes of the names that were not used for so long.
func (s *Store) tidy(idle time.Duration) {
	s.tidying.Lock() // so that who closes the Store waits for one under way
	defer s.tidying.Unlock()
	var deleting sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for _, name := range s.idleFor(idle) {
		turns <- struct{}{}
		deleting.Go(func() {
			s.deleteDir(name)
			<-turns
		})
	}
	deleting.Wait()
}

// idleFor returns the names that were not used for so long, and forgets them.
func (s *Store) idleFor(d time.Duration) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, since := range s.idle {
		if time.Since(since) >= d {
			names = append(names, name)
			delete(s.idle, name)
		}
	}
	return names
}

// deleteDir deletes the znode of a name, unless somebody is in its queue, or others made it. Without a connection it is left
// to the server.
func (s *Store) deleteDir(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	t := &call{Store: s, ctx: ctx}
	if !s.connected() {
		return
	}
	if data, _, err := t.get(t.dir(name)); err == nil && string(data) == ownDir {
		_ = t.write(func() error { return t.conn.Delete(t.dir(name), -1) })
	}
}

// lastWords is how long Close waits for the server at most.
const lastWords = 3 * time.Second

// Close implements driver.Closer: it waits for operations whose callers have left, and for deletions that are tried again, and then
// deletes the empty znodes of names that were used a short while ago.
func (s *Store) Close(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	for s.unfinished() {
		select {
		case <-time.After(poll):
		case <-bounded.Done():
			return cmp.Or(ctx.Err(), errSilent)
		}
	}
	done := make(chan struct{})
	go func() {
		s.tidy(0)
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-bounded.Done():
		return cmp.Or(ctx.Err(), errSilent)
	}
}

// unfinished says whether something is under way that nobody waits for.
func (s *Store) unfinished() bool {
	if s.left.Load()+s.renewals.Load() > 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		if n.ending {
			return true
		}
	}
	return false
}
