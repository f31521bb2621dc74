package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// server is a backend with one name.
type server struct {
	owner   string
	expires time.Duration
	kept    bool   // nobody owns it, and it stays taken until expires
	handoff string // with kept: whoever has this takes it over
	label   string
	fence   uint64
	marked  map[string]bool // scopes
	queue   []entry
	direct  bool // it grants directly
	sharers []share
}

// share is one of several who have the name at the same time.
type share struct {
	token   string
	limit   int
	expires time.Duration
}

// until is until when a token has the name, 0 if it has not.
func (s *server) until(token string) time.Duration {
	for _, x := range s.sharers {
		if x.token == token {
			return x.expires
		}
	}
	if s.owner == token {
		return s.expires
	}
	return 0
}

// entry is one place in the queue.
type entry struct {
	token  string
	look   look // that left it there
	dies   time.Duration
	number uint64
}

// look is what a Wait asks with.
type look struct {
	claim  driver.Claim
	number uint64 // grows with each look of a process
	nonce  int
}

// note is a message to whoever waits.
type note struct {
	token   string
	nonce   int
	granted bool
	grant   driver.Grant
}

type answer struct {
	grant driver.Grant
	err   error
}

// meet drops what is dead at now.
func (s *server) meet(now time.Duration) {
	if (s.owner != "" || s.kept) && now >= s.expires {
		s.owner, s.kept = "", false
	}
	s.sharers = slices.DeleteFunc(s.sharers, func(x share) bool { return now >= x.expires })
	alive := s.queue[:0]
	for _, e := range s.queue {
		if now < e.dies {
			alive = append(alive, e)
		}
	}
	s.queue = alive
}

func (s *server) leave(token string) {
	for i, e := range s.queue {
		if e.token == token {
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			return
		}
	}
}

func (s *server) grant(c driver.Claim, until time.Duration) driver.Grant {
	n := max(1, c.Fences)
	if len(s.queue) > 0 {
		n = min(n, driver.FencesBesideOthers)
	}
	g := driver.Grant{Fence: s.fence + 1, Fences: n}
	s.fence += uint64(n)
	if together(c.Limit) {
		s.sharers = slices.DeleteFunc(s.sharers, func(x share) bool { return x.token == c.Token })
		s.sharers = append(s.sharers, share{c.Token, c.Limit, until})
		s.leave(c.Token)
		return g
	}
	s.owner, s.kept, s.expires, s.label = c.Token, false, until, c.Label
	s.leave(c.Token)
	return g
}

func together(limit int) bool { return limit == driver.Readers || limit > 1 }

// free says whether somebody with this limit may have the name, beside those who have it.
func (s *server) free(limit int) bool {
	switch {
	case s.owner != "" || s.kept:
		return false
	case len(s.sharers) == 0:
		return true
	case !together(limit) || s.sharers[0].limit != limit:
		return false
	}
	return limit == driver.Readers || len(s.sharers) < limit
}

// serve gives a free name to the first entry, or has it told.
func (s *server) serve(now time.Duration) (notes []note) {
	if len(s.queue) == 0 || !s.free(s.queue[0].look.claim.Limit) {
		return nil
	}
	e := s.queue[0]
	if !s.direct || !e.look.claim.Plain() || e.dies-now < driver.PlaceLife(e.look.claim.TTL)/2 {
		return []note{{token: e.token, nonce: e.look.nonce}}
	}
	g := s.grant(e.look.claim, e.dies)
	g.TTL = driver.PlaceLife(e.look.claim.TTL)
	return []note{{e.token, e.look.nonce, true, g}}
}

func (s *server) held(now time.Duration) *driver.Held {
	return &driver.Held{Label: s.label, Remaining: max(0, s.expires-now)}
}

func (s *server) acquire(now time.Duration, c driver.Claim) (answer, []note) {
	s.meet(now)
	return s.ask(now, c)
}

func (s *server) ask(now time.Duration, c driver.Claim) (answer, []note) {
	switch {
	case c.Dedup > 0 && s.marked[c.Scope]:
		return answer{err: &driver.Duplicate{}}, nil
	case s.kept && c.Handoff != "" && s.handoff == c.Handoff:
		s.handoff = ""
		return answer{grant: s.grant(c, now+c.TTL)}, nil
	case s.until(c.Token) > 0, s.free(c.Limit) && (len(s.queue) == 0 || s.queue[0].token == c.Token):
		return answer{grant: s.grant(c, now+c.TTL)}, s.serve(now) // who is next may have it beside c
	}
	return answer{err: s.held(now)}, s.serve(now)
}

func (s *server) wait(now time.Duration, l look, queues bool) (answer, []note) {
	s.meet(now)
	a, notes := s.ask(now, l.claim)
	if _, held := a.err.(*driver.Held); !held || !queues { //nolint:errorlint // made above
		return a, notes
	}
	for i := range s.queue {
		if e := &s.queue[i]; e.token == l.claim.Token {
			if l.number > e.number {
				e.look, e.number, e.dies = l, l.number, now+driver.PlaceLife(l.claim.TTL)
			}
			return a, notes
		}
	}
	if s.until(l.claim.Token) > 0 { // served just now
		return a, notes
	}
	s.queue = append(s.queue, entry{l.claim.Token, l, now + driver.PlaceLife(l.claim.TTL), l.number})
	return a, append(notes, s.serve(now)...)
}

func (s *server) renew(now time.Duration, c driver.Claim) error {
	s.meet(now)
	for i := range s.sharers {
		if x := &s.sharers[i]; x.token == c.Token {
			x.expires = now + c.TTL
			return nil
		}
	}
	if s.owner != c.Token {
		return driver.ErrNotOwner
	}
	s.expires = now + c.TTL
	return nil
}

func (s *server) release(now time.Duration, c driver.Claim) (answer, []note) {
	s.meet(now)
	s.leave(c.Token)
	a := answer{err: driver.ErrNotOwner}
	if n := len(s.sharers); n > 0 {
		s.sharers = slices.DeleteFunc(s.sharers, func(x share) bool { return x.token == c.Token })
		if len(s.sharers) < n {
			a.err = nil
		}
	}
	if s.owner == c.Token {
		a.err = nil
		s.owner = ""
		if c.Keep > 0 {
			s.kept, s.handoff, s.expires = true, c.Handoff, now+c.Keep
		}
		if c.Dedup > 0 {
			s.marked[c.Scope] = true
		}
	}
	return a, s.serve(now)
}

func (s *server) String() string {
	return fmt.Sprintf("owner %.4q until %s, kept %t, %d share it, %d queue", s.owner, s.expires, s.kept, len(s.sharers), len(s.queue))
}
