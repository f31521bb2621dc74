package zklock

import (
	"context"
	"time"
)

// The znode of a name is a container, which the server deletes when it has been empty for a while. But it looks once a
// minute, and deletes 10,000 a minute at most: names that are used once would grow without bound. So a Store deletes
// the znode itself, once it has not used the name for lingers. Those of a process that dies are left to the server.

// lingers is how long the znode of a name stays after its last use. A name that is used again before that costs
// no write more.
const lingers = time.Second

// unused is a name that this Store has used, and does not use now.
type unused struct {
	timer *time.Timer
	done  chan struct{} // closed once nothing more is done about it
}

// use keeps the znode of a name.
func (s *store) use(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.unused[name]; u != nil && u.timer.Stop() {
		delete(s.unused, name)
		close(u.done)
	}
}

// disuse has the znode of a name deleted if nobody uses it soon.
func (s *store) disuse(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.unused[name]; u != nil && u.timer.Stop() {
		u.timer.Reset(lingers)
		return
	}
	u := &unused{done: make(chan struct{})}
	u.timer = time.AfterFunc(lingers, func() { s.tidy(name, u) })
	s.unused[name] = u
}

// tidy deletes the znode of a name, unless somebody stands in line, or others made it.
func (s *store) tidy(name string, u *unused) {
	if s.connected() { // otherwise it is left to the server
		s.deleteDir(name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unused[name] == u {
		delete(s.unused, name)
	}
	close(u.done)
}

func (s *store) deleteDir(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	t := &trip{store: s, ctx: ctx}
	data, stat, err := t.stat(t.dir(name))
	if err == nil && stat != nil && stat.NumChildren == 0 && string(data) == ownDir {
		_ = t.write(func() error { return t.conn.Delete(t.dir(name), -1) }) // if somebody has come meanwhile, it stays
	}
}

// CloseIdle implements driver.IdleCloser: it deletes the empty znodes of names that were used a short while ago.
func (s *store) CloseIdle(ctx context.Context) error {
	s.mu.Lock()
	var under []*unused
	for name, u := range s.unused {
		under = append(under, u)
		if u.timer.Stop() {
			go s.tidy(name, u)
		}
	}
	s.mu.Unlock()
	for _, u := range under {
		select {
		case <-u.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
