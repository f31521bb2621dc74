package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// server is a backend with one name.
type server struct {
	holders []holder      // one, or several who share it
	kept    time.Duration // nobody has it, and it stays taken until then
	handoff string        // whoever has this takes it over meanwhile
	fence   uint64
	marked  map[string]bool // scopes
	queue   []entry
	direct  bool // it grants directly
}

// holder is one who has the name.
type holder struct {
	token   string
	limit   int
	expires time.Duration
}

// of is who has the name with a token; nil if nobody does.
func (s *server) of(token string) *holder {
	for i := range s.holders {
		if s.holders[i].token == token {
			return &s.holders[i]
		}
	}
	return nil
}

// until is until when a token has the name, 0 if it has not.
func (s *server) until(token string) time.Duration {
	if h := s.of(token); h != nil {
		return h.expires
	}
	return 0
}

// entry is one place in the queue.
type entry struct {
	look // that left it there
	dies time.Duration
}

// look is what a Wait asks with.
type look struct {
	claim driver.Claim
	nonce int // grows with each look
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
	if now >= s.kept {
		s.kept = 0
	}
	s.holders = slices.DeleteFunc(s.holders, func(h holder) bool { return now >= h.expires })
	s.queue = slices.DeleteFunc(s.queue, func(e entry) bool { return now >= e.dies })
}

// leave drops what is known of a token.
func (s *server) leave(token string) {
	s.holders = slices.DeleteFunc(s.holders, func(h holder) bool { return h.token == token })
	s.queue = slices.DeleteFunc(s.queue, func(e entry) bool { return e.claim.Token == token })
}

func (s *server) grant(c driver.Claim, until time.Duration) driver.Grant {
	n := max(1, c.Fences)
	if len(s.queue) > 0 {
		n = min(n, driver.FencesBesideOthers)
	}
	g := driver.Grant{Fence: s.fence + 1, Fences: n}
	s.fence += uint64(n)
	s.leave(c.Token)
	s.holders = append(s.holders, holder{c.Token, c.Limit, until})
	s.kept = 0
	return g
}

func together(limit int) bool { return limit == driver.Readers || limit > 1 }

// free says whether somebody with this limit may have the name, beside those who have it.
func (s *server) free(limit int) bool {
	switch {
	case s.kept > 0:
		return false
	case len(s.holders) == 0:
		return true
	case !together(limit) || s.holders[0].limit != limit:
		return false
	}
	return limit == driver.Readers || len(s.holders) < limit
}

// serve gives a free name to the first entry, or has it told.
func (s *server) serve(now time.Duration) (notes []note) {
	if len(s.queue) == 0 || !s.free(s.queue[0].claim.Limit) {
		return nil
	}
	e := s.queue[0]
	if !s.direct || !e.claim.Plain() || e.dies-now < driver.PlaceLife(e.claim.TTL)/2 {
		return []note{{token: e.claim.Token, nonce: e.nonce}}
	}
	g := s.grant(e.claim, e.dies)
	g.TTL = driver.PlaceLife(e.claim.TTL)
	return []note{{e.claim.Token, e.nonce, true, g}}
}

func (s *server) acquire(now time.Duration, c driver.Claim) (answer, []note) {
	s.meet(now)
	switch {
	case c.Dedup > 0 && s.marked[c.Scope]:
		return answer{err: &driver.Duplicate{}}, nil
	case s.kept > 0 && c.Handoff != "" && s.handoff == c.Handoff:
		s.handoff = ""
		return answer{grant: s.grant(c, now+c.TTL)}, nil
	case s.until(c.Token) > 0, s.free(c.Limit) && (len(s.queue) == 0 || s.queue[0].claim.Token == c.Token):
		return answer{grant: s.grant(c, now+c.TTL)}, s.serve(now) // who is next may have it beside c
	}
	return answer{err: &driver.Held{}}, s.serve(now)
}

func (s *server) wait(now time.Duration, l look, queues bool) (answer, []note) {
	a, notes := s.acquire(now, l.claim)
	if _, held := a.err.(*driver.Held); !held || !queues { //nolint:errorlint // made above
		return a, notes
	}
	dies := now + driver.PlaceLife(l.claim.TTL)
	for i, e := range s.queue {
		if e.claim.Token == l.claim.Token {
			if l.nonce > e.nonce {
				s.queue[i] = entry{l, dies}
			}
			return a, notes
		}
	}
	if s.until(l.claim.Token) > 0 { // served just now
		return a, notes
	}
	s.queue = append(s.queue, entry{l, dies})
	return a, append(notes, s.serve(now)...)
}

func (s *server) renew(now time.Duration, c driver.Claim) error {
	s.meet(now)
	h := s.of(c.Token)
	if h == nil {
		return driver.ErrNotOwner
	}
	h.expires = now + c.TTL
	return nil
}

func (s *server) release(now time.Duration, c driver.Claim) (a answer, notes []note) {
	s.meet(now)
	switch {
	case s.of(c.Token) == nil:
		a.err = driver.ErrNotOwner
	case c.Keep > 0:
		s.kept, s.handoff = now+c.Keep, c.Handoff
	}
	if a.err == nil && c.Dedup > 0 {
		s.marked[c.Scope] = true
	}
	s.leave(c.Token)
	return a, s.serve(now)
}

func (s *server) String() string {
	return fmt.Sprintf("%+v, kept until %s, %d queue", s.holders, s.kept, len(s.queue))
}
