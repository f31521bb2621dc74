package core_test

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// server is the lock service as one process reaches it. It writes down whom it has given what, in the order in which that happens.
type server struct {
	*memlock.Store
	scene   *scene
	process *process
}

// grant is what the server has given to one token, if anything.
type grant struct {
	claim       driver.Claim
	process     *process
	request     *request    // that the token was made for
	left        func() bool // whether the caller of its last command has left
	owns        bool
	first, last time.Time // when it was granted; zero if it was not
	until       time.Time // it is over then, or will be if nobody renews it
	unheard     bool      // the last grant was made after its caller had left
	inLine      bool      // it was granted while it waited
	handoff     string    // who may take it over, once it is kept for that
}

// Acquire implements driver.Driver.
func (v *server) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	s := v.scene
	s.mu.Lock()
	defer s.mu.Unlock()
	x := v.asks(ctx, c)
	g, err := v.Store.Acquire(ctx, c)
	if err == nil && c.Handoff != "" {
		for _, y := range s.grants {
			if y.handoff == c.Handoff && y.until.After(time.Now()) {
				y.until, y.handoff = time.Now(), ""
			}
		}
	}
	if err == nil {
		s.granted(x, time.Now().Add(c.TTL))
	}
	v.answers(ctx, "acquire", c, err)
	return g, err
}

// Wait implements driver.Driver.
func (v *server) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	s := v.scene
	s.mu.Lock()
	x := v.asks(ctx, c)
	s.mu.Unlock()
	g, err := v.Store.Wait(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	v.answers(ctx, "wait", c, err)
	if err == nil {
		x.until = time.Now().Add(c.TTL)
	}
	return g, err
}

// Renew implements driver.Driver.
func (v *server) Renew(ctx context.Context, claims []driver.Claim) []error {
	s := v.scene
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := v.Store.Renew(ctx, claims)
	for i, c := range claims {
		if x := s.grants[c.Token]; errs[i] == nil && c.TTL > 0 && x != nil {
			x.until = time.Now().Add(c.TTL)
		}
		v.answers(ctx, "renew", c, errs[i])
	}
	return errs
}

// Release implements driver.Driver.
func (v *server) Release(ctx context.Context, c driver.Claim) error {
	s := v.scene
	s.mu.Lock()
	defer s.mu.Unlock()
	err := v.Store.Release(ctx, c)
	if x := s.grants[c.Token]; err == nil && x != nil {
		x.owns, x.until, x.handoff = false, time.Now().Add(c.Keep), c.Handoff
	}
	if err == nil {
		s.leftBehind(c)
	}
	v.answers(ctx, "release", c, err)
	return err
}

// asks writes down that somebody wants a name.
func (v *server) asks(ctx context.Context, c driver.Claim) *grant {
	x := v.scene.grants[c.Token]
	if x == nil {
		x = new(grant)
		v.scene.grants[c.Token] = x
	}
	x.left = lab.Left(ctx)
	if x.first.IsZero() {
		x.claim, x.process, x.request = c, v.process, requestOf(ctx)
	}
	return x
}

// granted writes down a grant. Nobody else may be trusted now.
func (s *scene) granted(x *grant, until time.Time) {
	x.last, x.until, x.owns = time.Now(), until, true
	if x.first.IsZero() {
		x.first = x.last
	}
	x.unheard = x.left()
	s.count(x.unheard, "grants to commands that were left")
	s.alone(x)
}

// answers writes down what a command has come to, and whom the server has given the name while they waited.
func (v *server) answers(ctx context.Context, command string, c driver.Claim, err error) {
	s, r := v.scene, requestOf(ctx)
	s.note("    server: %s of %s for token ..%s, %v: %v", command, c.Name, c.Token[len(c.Token)-3:], r, err) // the last letters tell it from others
	if _, held := errors.AsType[*driver.Held](err); held && r != nil && len(r.job.names) == 1 && s.calm(v.process, r.began) {
		r.held = time.Now()
	}
	var waiting []*grant
	var verify []driver.Claim
	for token, x := range s.grants {
		if x.claim.Name == c.Name && !(x.owns && x.until.After(time.Now())) {
			waiting, verify = append(waiting, x), append(verify, driver.Claim{Name: c.Name, Token: token})
		}
	}
	for i, err := range v.Store.Renew(context.Background(), verify) {
		x := waiting[i]
		if x.owns = err == nil; x.owns {
			info, _ := v.Inspect(context.Background(), c.Name) // memory does not fail
			x.inLine = true
			s.count(true, "grants in line")
			s.note("    server: grant in line of %s for token ..%s, %v", c.Name, x.claim.Token[len(x.claim.Token)-3:], x.request)
			s.granted(x, time.Now().Add(info.Remaining))
		}
	}
}

// leftBehind judges what a release leaves behind.
func (s *scene) leftBehind(c driver.Claim) {
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
	case c.Name != h.parts[0].Name():
		s.fault("%v: the marker is on %q", h.request, c.Name)
	}
}
