package core_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// request is one call that asks for a lease.
type request struct {
	number  int
	job     *job
	process *process
	handoff core.Handoff
	given   *given // the same, and nil for a stale one
	ctx     context.Context
	began   time.Time

	// Protected by scene.mu.
	cut   time.Time // when ctx ended, if it has
	over  time.Time // when the call was answered, if it was
	err   error     // the answer
	local bool      // that it is a degraded lease
	held  time.Time // when the server has said so, and that has arrived
}

func (r *request) String() string {
	return fmt.Sprintf("#%d (job %d, process %d)", r.number, r.job.number, r.process.number)
}

// ended says whether the request's context has ended, if only by the clock.
func (r *request) ended() bool {
	deadline, ok := r.ctx.Deadline()
	return r.ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

type requestKey struct{}

// requestOf is the request that a driver's call is for, or nil.
func requestOf(ctx context.Context) *request {
	if c, ok := ctx.Value(commandKey{}).(*command); ok {
		return c.request
	}
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// ask begins a request.
func (s *scene) ask(ctx context.Context, e *job) *request {
	r := &request{job: e, process: s.processes[e.process], began: time.Now()}
	r.ctx = context.WithValue(ctx, requestKey{}, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.handoff != noHandoff {
		r.handoff, r.given = s.handoff(e)
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

// given is a hand-off that Detach has made.
type given struct {
	handoff core.Handoff
	until   time.Time // the name is kept for it
	used    int       // how often somebody has come with it
}

// handoff finds one for the job, fresh or not. The caller holds the mutex.
func (s *scene) handoff(e *job) (core.Handoff, *given) {
	var all []*given
	for _, g := range s.given {
		if g.handoff.Name() == e.names[0] {
			all = append(all, g)
		}
	}
	if e.handoff == someHandoff && len(all) > 0 {
		g := all[max(0, len(all)-1-e.choice%3)] // mostly one of the last
		g.used++
		s.reserved = slices.DeleteFunc(s.reserved, func(r reserved) bool { return r.handoff == g.handoff })
		return g.handoff, g
	}
	raw := append([]byte{1, 16: byte(e.number)}, e.names[0]...)
	t, err := core.ParseHandoff(base64.RawURLEncoding.EncodeToString(raw))
	if err != nil {
		panic(err) // of this test
	}
	return t, nil
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
func (s *scene) bound(e *job) time.Duration { return min(max(s.ttl, e.ttl)/3, bound) }

// slack is what a call may take longer than it says.
const slack = 50 * time.Millisecond

// answered judges what a request came to.
func (s *scene) answered(r *request, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.over.IsZero() {
		return
	}
	r.over, r.err = time.Now(), err
	s.moves++
	if err != nil {
		s.note("%v: %v", r, err)
	}
	s.inTime(r)
	if err == nil {
		return
	}
	kinds := kindsOf(err)
	if held, ok := errors.AsType[*core.HeldError](err); ok && !isLabel(held.Label) {
		s.fault("%v: held by %q", r, held.Label)
	}
	if !r.ended() && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		s.fault("%v: %v, and its context stands", r, err)
	}
	if len(kinds) != 1 {
		s.fault("%v: %v is of the kinds %v", r, err, kinds)
		return
	}
	if why := s.lie(r, kinds[0]); why != "" {
		s.fault("%v: %v, and %s", r, err, why)
	}
}

// isLabel says whether somebody has this label. Readers are not named, nor is who has the name for nobody.
func isLabel(s string) bool {
	host, pid, ok := strings.Cut(strings.TrimSuffix(s, " POST /orders"), ":")
	return s == "" || s == "mine" || ok && host != "" && pid == strconv.Itoa(os.Getpid())
}

func kindsOf(err error) (kinds []error) {
	for _, kind := range []error{
		core.ErrHeld, core.ErrUnavailable, core.ErrDuplicate, core.ErrDraining, core.ErrLost, core.ErrClosed, core.ErrInvalid,
	} {
		if errors.Is(err, kind) {
			kinds = append(kinds, kind)
		}
	}
	if errors.Is(err, core.ErrDraining) { // it is both, for doors
		kinds = slices.DeleteFunc(kinds, func(kind error) bool { return kind == core.ErrUnavailable }) //nolint:errorlint // as above
	}
	return kinds
}

// lie says why an error cannot be true. The caller holds the mutex.
func (s *scene) lie(r *request, kind error) string {
	recently := r.began.Add(-s.linger())
	switch kind {
	case core.ErrHeld: //nolint:errorlint // one of the sentinels, as kindsOf gives it
		if g := r.given; g != nil && g.used == 1 && g.until.After(r.began) && s.calm(r.process, recently) && !r.ended() {
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
		if !r.process.isClosing() {
			return "nobody has closed it"
		}
	case core.ErrDraining:
		if !r.process.isDraining() {
			return "nobody drains it"
		}
		for h := r.job.outer; h != nil; h = h.request.job.outer {
			if h.lease.Err() == nil {
				return "it is a part of work under way"
			}
		}
	default:
		return "that is no answer"
	}
	return ""
}

// inTime fails a request that has outlived its context or its budget. The caller holds the mutex.
func (s *scene) inTime(r *request) {
	if r.job.way == campaign {
		return
	}
	if !r.cut.IsZero() {
		grace := slack
		if errors.Is(r.ctx.Err(), context.Canceled) {
			grace += quickPatience
		}
		if took := r.over.Sub(r.cut); took > grace {
			s.fault("%v: answered %v after its context ended", r, took)
		}
	}
	if at, ok := r.process.closed(); ok && at.After(r.began) {
		if took := r.over.Sub(at); took > 4*s.bound(r.job)+slack { // an attempt, and what it was granted is given back
			s.fault("%v: answered %v after its process was closed", r, took)
		}
	}
	if at, ok := r.process.drained(); ok && at.After(r.began) && r.job.depth == 0 {
		if took := r.over.Sub(at); took > 4*s.bound(r.job)+slack {
			s.fault("%v: answered %v after its process began to drain", r, took)
		}
	}
	wait := r.job.wait
	if r.job.way == try {
		wait = 0
	}
	if wait == core.WaitForever {
		return
	}
	attempts := int64(2 * len(r.job.names))
	if took := r.over.Sub(r.began); took > wait+time.Duration(attempts*int64(s.bound(r.job)))+slack {
		s.fault("%v: answered after %v, with a budget of %v", r, took, wait)
	}
}

const quickPatience = 250 * time.Millisecond // of core, for the answer to a cancelled command

// somebodyElse says whether anybody but r has had one of its names since, or may have stood in line.
// The caller holds the mutex.
func (s *scene) somebodyElse(r *request, since time.Time) bool {
	wants := func(name string) bool { return slices.Contains(r.job.names, name) }
	for _, t := range s.tenancies {
		if t.request != r && wants(t.name) && !t.until.Before(since) {
			return true
		}
	}
	for _, p := range s.parts {
		if p.holding.request != r && wants(p.name) && (p.holding.over.IsZero() || !p.holding.over.Before(since)) {
			return true
		}
	}
	inLine := since.Add(-driver.PlaceLife(2 * s.ttl))
	for _, q := range s.requests {
		if q != r && q.job.wait != 0 && slices.ContainsFunc(q.job.names, wants) && (q.over.IsZero() || q.over.After(inLine)) {
			return true
		}
	}
	return false
}
