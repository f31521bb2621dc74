package core_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// request is one call that asks for a lease.
type request struct {
	number  int
	job     *job
	process *process
	handoff core.Handoff
	kept    *kept // what the hand-off is for, and nil for a stale one
	ctx     context.Context
	began   time.Time

	// Protected by scene.mu.
	cut   time.Time // when ctx ended, if it has
	over  time.Time // when the call was answered, if it was
	local bool      // it got a degraded lease
	held  time.Time // when the server has said so, and that has arrived
}

func (r *request) String() string {
	if r == nil {
		return "nobody's call"
	}
	return fmt.Sprintf("#%d (job %d, process %d)", r.number, r.job.number, r.process.number)
}

// ended says whether the request's context has ended, if only by the clock.
func (r *request) ended() bool {
	deadline, ok := r.ctx.Deadline()
	return r.ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

func (r *request) wants(name string) bool { return slices.Contains(r.job.names, name) }

type requestKey struct{}

// requestOf is the request that a driver's call is for, or nil.
func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// ask begins a request.
func (s *scene) ask(ctx context.Context, e *job) *request {
	r := &request{job: e, process: s.processes[e.process], began: time.Now()}
	r.ctx = context.WithValue(ctx, requestKey{}, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.handoff != "" {
		r.handoff, r.kept = s.handoff(e)
	}
	r.number = len(s.requests)
	s.requests = append(s.requests, r)
	s.note("%v asks: %s %v %s", r, e.way, e.names, e.kind)
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.cut = time.Now()
	})
	return r
}

// kept is a name that nobody has and nobody gets, but for whoever comes with the hand-off, if there is one.
type kept struct {
	name, token string
	until       time.Time
	handoff     core.Handoff
	used        int // how often somebody has come with it
}

// handoff finds one for the job, fresh or not. The caller holds the mutex.
func (s *scene) handoff(e *job) (core.Handoff, *kept) {
	var all []*kept
	for _, k := range s.kept {
		if k.handoff.Name() == e.names[0] {
			all = append(all, k)
		}
	}
	if e.handoff == someHandoff && len(all) > 0 {
		k := all[max(0, len(all)-1-e.choice%3)] // mostly one of the last
		k.used++
		return k.handoff, k
	}
	raw := append([]byte{1, 16: byte(e.number)}, e.names[0]...)
	h, err := core.ParseHandoff(base64.RawURLEncoding.EncodeToString(raw))
	if err != nil {
		panic(err) // of this test
	}
	return h, nil
}

// waiting lists the requests that are not answered. The caller holds the mutex.
func (s *scene) waiting() (all []*request) {
	for _, r := range s.requests {
		if r.over.IsZero() {
			all = append(all, r)
		}
	}
	return all
}

// bound is how long one attempt of a job's may take.
func (s *scene) bound(e *job) time.Duration {
	life := s.ttlOf(e)
	if e.kind == minHeld {
		life = max(life, e.minHold)
	}
	return min(life/3, bound)
}

func (s *scene) ttlOf(e *job) time.Duration { return cmp.Or(e.ttl, s.ttl) }

// slack is what a call may take longer than it says.
const slack = 50 * time.Millisecond

// answered judges what a request came to.
func (s *scene) answered(r *request, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.over.IsZero() {
		return
	}
	r.over = time.Now()
	s.moves++
	s.inTime(r)
	if err == nil {
		return
	}
	s.note("%v: %v", r, err)
	if !r.ended() && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		s.fault("%v: %v, and its context stands", r, err)
	}
	var kinds []error
	for _, kind := range []error{core.ErrHeld, core.ErrUnavailable, core.ErrDuplicate, core.ErrDraining, core.ErrClosed, core.ErrInvalid} {
		also := kind == core.ErrUnavailable && errors.Is(err, core.ErrDraining) //nolint:errorlint // it is both, for middleware
		if errors.Is(err, kind) && !also {
			kinds = append(kinds, kind)
			s.count(true, fmt.Sprint(kind))
		}
	}
	if len(kinds) != 1 || errors.Is(err, core.ErrLost) {
		s.fault("%v: %v is of the kinds %v", r, err, kinds)
	} else if why := s.lie(r, kinds[0]); why != "" {
		s.fault("%v: %v, and %s", r, err, why)
	}
}

// lie says why an error cannot be true. The caller holds the mutex.
func (s *scene) lie(r *request, kind error) string {
	recently := r.began.Add(-s.linger())
	switch kind {
	case core.ErrHeld: //nolint:errorlint // one of the sentinels
		if k := r.kept; k != nil && k.used == 1 && k.until.After(r.began) && s.calm(r.process, recently) && !r.ended() {
			return "the name was kept for its hand-off"
		}
		if !s.somebodyElse(r, recently) {
			return "nobody else has had or wanted the name"
		}
	case core.ErrUnavailable:
		if !r.ended() && s.calm(r.process, recently) {
			return "the link is in order"
		}
	case core.ErrInvalid:
		if !r.job.wrong {
			return "there is nothing wrong with it"
		}
	case core.ErrDuplicate:
		if r.job.kind != deduped || !s.mayBeDone(r, recently) {
			return "nobody has completed it"
		}
	case core.ErrClosed:
		if r.process.closing.IsZero() {
			return "nobody has closed it"
		}
	case core.ErrDraining:
		if r.process.drain.IsZero() {
			return "nobody drains it"
		}
		for h := r.job.outer; h != nil; h = h.request.job.outer {
			if h.lease.Err() == nil {
				return "it is a part of work under way"
			}
		}
	}
	return ""
}

const quickPatience = 250 * time.Millisecond // of core, for the answer to a cancelled command

// inTime fails a request that has outlived its context, its budget or its process. The caller holds the mutex.
func (s *scene) inTime(r *request) {
	if r.job.way == campaign {
		return
	}
	late := func(since time.Time, most time.Duration, what string) {
		if took := r.over.Sub(since); !since.IsZero() && took > most+slack {
			s.fault("%v: answered %v after %s", r, took, what)
		}
	}
	grace := time.Duration(0)
	if errors.Is(r.ctx.Err(), context.Canceled) {
		grace = quickPatience
	}
	late(r.cut, grace, "its context ended")
	if r.process.closing.After(r.began) { // an attempt, and what it was granted is given back
		late(r.process.closing, 4*s.bound(r.job), "its process was closed")
	}
	if r.process.drain.After(r.began) && r.job.depth == 0 {
		late(r.process.drain, 4*s.bound(r.job), "its process began to drain")
	}
	if wait := r.job.budget(); wait != core.WaitForever {
		most := wait + time.Duration(2*len(r.job.names))*s.bound(r.job)
		if r.job.way == try {
			most = s.bound(r.job)
		}
		late(r.began, most, fmt.Sprintf("it began, with a budget of %v", wait))
	}
}

// somebodyElse says whether anybody but r has had one of its names since, or may have stood in line.
// The caller holds the mutex.
func (s *scene) somebodyElse(r *request, since time.Time) bool {
	for _, x := range s.grants {
		if x.request != r && r.wants(x.claim.Name) && !x.until.Before(since) {
			return true
		}
	}
	for _, p := range s.parts {
		if h := p.holding; h.request != r && r.wants(p.Name()) && (h.over.IsZero() || !h.over.Before(since)) {
			return true
		}
	}
	inLine := since.Add(-driver.PlaceLife(s.longest))
	return slices.ContainsFunc(s.requests, func(q *request) bool {
		return q != r && (q.job.wait != 0 || q.job.local) && slices.ContainsFunc(q.job.names, r.wants) && (q.over.IsZero() || q.over.After(inLine))
	})
}

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
		if x.claim.Name == c.Name && (!x.owns || !x.until.After(time.Now())) {
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
