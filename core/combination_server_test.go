package core_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// server is the lock service as one process reaches it. It writes down to whom it gives what.
type server struct {
	*memlock.Store
	scene   *scene
	process *process
	mu      *sync.Mutex // what is written down is in the order in which it has happened
}

// tenancy is what the server has given to one token.
type tenancy struct {
	name, token string
	claim       driver.Claim
	process     *process
	request     *request  // that the token was made for; nil if that is not known
	first, last time.Time // when it was granted
	until       time.Time // it is over then, or will be if nobody renews it
	unheard     bool      // the last grant was made after its caller had left
	inLine      bool      // it was granted while it waited
	handoff     string    // who may take it over, once it is kept for that
}

// Acquire implements driver.Driver.
func (s *server) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.inLine(c.Name)()
	g, err := s.Store.Acquire(ctx, c)
	s.note(ctx, "acquire", c, err)
	if err == nil {
		s.granted(ctx, c)
	} else if r := requestOf(ctx); r != nil && s.scene.calm(s.process, r.began) {
		s.scene.refused(r, err)
	}
	return g, err
}

// Renew implements driver.Driver.
func (s *server) Renew(ctx context.Context, claims []driver.Claim) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := s.Store.Renew(ctx, claims)
	for i, c := range claims {
		s.inLine(c.Name)
		if errs[i] != nil {
			s.note(ctx, "renew", c, errs[i])
		} else if c.TTL > 0 {
			s.scene.extended(c.Token, time.Now().Add(c.TTL), "")
		}
	}
	return errs
}

// Release implements driver.Driver.
func (s *server) Release(ctx context.Context, c driver.Claim) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.inLine(c.Name)()
	err := s.Store.Release(ctx, c)
	s.note(ctx, "release", c, err)
	if err == nil {
		s.scene.extended(c.Token, time.Now().Add(c.Keep), c.Handoff)
	}
	if err == nil {
		s.scene.left(c)
	}
	return err
}

// Wait implements driver.Driver.
func (s *server) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	s.scene.mu.Lock()
	s.scene.waits[c.Token] = waits{s, c, context.WithoutCancel(ctx)}
	s.scene.mu.Unlock()
	g, err := s.Store.Wait(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inLine(c.Name)
	s.note(ctx, "wait", c, err)
	if r := requestOf(ctx); err == nil && s.scene.knows(c.Token) {
		s.scene.extended(c.Token, time.Now().Add(c.TTL), "")
	} else if err == nil {
		s.granted(ctx, c)
	} else if err != nil && r != nil && s.scene.calm(s.process, r.began) {
		s.scene.refused(r, err)
	}
	return g, err
}

// knows says whether a grant was written down that is not over.
func (s *scene) knows(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenancies[token]
	return t != nil && t.until.After(time.Now())
}

// left judges what a release leaves behind.
func (s *scene) left(c driver.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var h *holding // the last one with this token
	for _, p := range s.parts {
		if p.Token() == c.Token && p.Inside() == nil {
			h = p.holding
		}
	}
	switch {
	case c.Keep > 0 && c.Handoff == "" && h == nil:
		s.fault("%q is kept by MinHold, and nobody had received it", c.Name)
	case c.Dedup == 0 || h == nil:
	case h.spoilt:
		s.fault("%v: it was lost before its end, and leaves a marker on %q", h.request, c.Name)
	case c.Name != h.parts[0].name:
		s.fault("%v: the marker is on %q", h.request, c.Name)
	}
}

// waits is a claim that may be granted while it waits.
type waits struct {
	server *server
	claim  driver.Claim
	ctx    context.Context //nolint:containedctx // says whose call it is
}

// inLine writes down whom the server has given the name to while they waited. It returns itself.
func (s *server) inLine(name string) (again func()) {
	again = func() { s.inLine(name) }
	s.scene.mu.Lock()
	var w waits
	for token, each := range s.scene.waits {
		verify := []driver.Claim{{Name: name, Token: token}}
		known := s.scene.tenancies[token]
		if each.claim.Name == name && (known == nil || !known.until.After(time.Now())) && s.Store.Renew(context.Background(), verify)[0] == nil {
			w = each
		}
	}
	s.scene.mu.Unlock()
	if w.server == nil {
		return again
	}
	info, _ := s.Inspect(context.Background(), name) // memory does not fail
	w.claim.TTL = info.Remaining
	w.server.granted(w.ctx, w.claim)
	s.scene.mu.Lock()
	s.scene.tenancies[w.claim.Token].inLine = true
	s.scene.mu.Unlock()
	w.server.note(w.ctx, "grant in line", w.claim, nil)
	return again
}

// note says what a command came to. The last letters of a token tell it from others.
func (s *server) note(ctx context.Context, command string, c driver.Claim, err error) {
	by := "nobody's call"
	if r := requestOf(ctx); r != nil {
		by = r.String()
	}
	s.scene.note("    server: %s of %s for token ..%s, %s: %v", command, c.Name, c.Token[len(c.Token)-3:], by, err)
}

// granted writes down a grant. Nobody else may be trusted now.
func (s *server) granted(ctx context.Context, c driver.Claim) {
	now := time.Now()
	left := false
	if sent, ok := ctx.Value(commandKey{}).(*command); ok {
		left = sent.left.Load()
	}
	s.scene.mu.Lock()
	defer s.scene.mu.Unlock()
	if c.Handoff != "" {
		s.scene.takenOver(c.Handoff, now)
	}
	t := s.scene.tenancies[c.Token]
	if t == nil {
		t = &tenancy{name: c.Name, token: c.Token, claim: c, process: s.process, request: requestOf(ctx), first: now}
		s.scene.tenancies[c.Token] = t
	}
	t.last, t.until, t.unheard = now, now.Add(c.TTL), left
	s.scene.alone(t)
}

// refused says that a request has an answer.
func (s *scene) refused(r *request, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, held := errors.AsType[*driver.Held](err); held && len(r.job.names) == 1 {
		r.held = time.Now()
	}
}

// extended says until when a token has its name, from now on.
func (s *scene) extended(token string, until time.Time, handoff string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tenancies[token]; t != nil {
		t.until, t.handoff = until, handoff
	}
}

// takenOver ends what was kept for a hand-off. The caller holds the mutex.
func (s *scene) takenOver(handoff string, now time.Time) {
	for _, t := range s.tenancies {
		if t.handoff == handoff && t.until.After(now) {
			t.until, t.handoff = now, ""
		}
	}
}
