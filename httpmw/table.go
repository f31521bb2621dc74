package httpmw

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// The types of a [Problem], explained in docs/operate/problem-types.md. They are identifiers: compare them, do not
// fetch them. They never change. They are https URLs because RFC 9457 requires an absolute URI that
// can become a page later. "urn:holdfast:…" could not, because its namespace is not registered.
const (
	TypeHeld           = "https://holdfast-go.github.io/problems/held"
	TypeDuplicate      = "https://holdfast-go.github.io/problems/already-processed"
	TypeInvalidKey     = "https://holdfast-go.github.io/problems/invalid-key"
	TypeTooLarge       = "https://holdfast-go.github.io/problems/body-too-large"
	TypeRoute          = "https://holdfast-go.github.io/problems/misconfigured-route"
	TypeKeyReused      = "https://holdfast-go.github.io/problems/idempotency-key-reused"
	TypeUnavailable    = "https://holdfast-go.github.io/problems/unavailable"
	TypeInterrupted    = "https://holdfast-go.github.io/problems/interrupted"
	TypeIdempotencyKey = "https://holdfast-go.github.io/problems/idempotency-key"
	TypeNobodysKey     = "https://holdfast-go.github.io/problems/idempotency-scope"
	TypeLost           = "https://holdfast-go.github.io/problems/lock-lost"
)

// row is a row of the table of answers.
type row struct {
	typ    string
	status int
	title  string
	why    string
}

// What a Detail says behind the reason.
const (
	unstarted = " This request was not started."
	unknown   = " What this request has done is not known."
)

// table has a row for each reason. It is not changed.
var table = [...]row{
	adapter.Held:          {TypeHeld, http.StatusConflict, "Resource is in use", "Another request is working on the same resource."},
	adapter.Duplicate:     {TypeDuplicate, http.StatusConflict, "Already processed", "An earlier request has done this already."},
	adapter.BadKey:        {TypeInvalidKey, http.StatusBadRequest, "Resource is not identified", "The request does not say, or not unambiguously, which resource it is for."},
	adapter.Misconfigured: {TypeRoute, http.StatusInternalServerError, "Route is misconfigured", "The server can not lock a resource in the way that this route wants."},
	adapter.Unavailable:   {TypeUnavailable, http.StatusServiceUnavailable, "Lock service is unavailable", "The server can not tell now whether the resource is in use."},
	adapter.Stopping:      {TypeUnavailable, http.StatusServiceUnavailable, "Lock service is unavailable", "The server is about to stop and takes no new work."},
	adapter.Ended:         {TypeInterrupted, http.StatusServiceUnavailable, "Request was interrupted", "The request ended before it was known whether the resource is in use."},
	adapter.Lost:          {TypeLost, http.StatusServiceUnavailable, "Lock was lost", "The server lost its claim on the resource while it worked on it."},
}

// These are about the request or the route, beside a reason.
var (
	tooLarge = row{TypeTooLarge, http.StatusRequestEntityTooLarge, "Body is too large", "The body is larger than what the server looks at to find the resource."}
	noSource = row{TypeRoute, http.StatusInternalServerError, "Route is misconfigured", "The server can not tell which resource a request of this route is for."}
)

// problem is the row's answer to a request.
func (r row) problem(err error, started bool) *Problem {
	p := &Problem{Type: r.typ, Title: r.title, Status: r.status, Detail: r.why + unstarted, Err: err, Started: started}
	if started {
		p.Detail = r.why + unknown
	}
	return p
}

// ProblemOf returns the answer to what became of a request, for middleware that is made of package adapter. It is nil if the
// work has run and nothing was lost.
func ProblemOf(out adapter.Outcome) *Problem {
	_, limited := errors.AsType[*http.MaxBytesError](out.Err)
	r := table[out.Reason]
	switch {
	case out.Reason == adapter.Done:
		return nil
	case limited || errors.Is(out.Err, key.ErrTooLarge):
		r = tooLarge
	case errors.Is(out.Err, adapter.ErrMisconfigured):
		r = noSource
	}
	p := r.problem(out.Join(), out.Ran())
	p.RetryAfter = out.RetryAfter()
	p.blame(out.Err)
	return p
}

// blame says which source of the key is at fault, and never with what value.
func (p *Problem) blame(err error) {
	if p.Type != TypeInvalidKey && p.Type != TypeTooLarge {
		return
	}
	if source, ok := errors.AsType[*key.SourceError](err); ok {
		p.Source, p.Reason = source.Source, source.Reason()
	}
	says := map[string]string{"missing": "no value", "ambiguous": "several values", "invalid": "no usable value"}[p.Reason]
	switch {
	case errors.Is(err, rule.ErrNotJSON):
		p.Reason = "content-type"
		p.Detail = "The Content-Type has to be application/json, once and in exactly this spelling." + unstarted
	case says != "":
		p.Detail = fmt.Sprintf("The request has %s for {%s}, which says which resource it is for.", says, p.Source) + unstarted
	}
}

// ProblemFor returns the [Problem] for an error of core, and nil for any other error. The middleware of Echo and Fiber
// uses it for what a handler returns. It is exported for handlers of net/http, which return no error. ErrInvalid is
// treated as a request without a good value for the key:
//
//	err := locks.Do(ctx, name, work)
//	if p := httpmw.ProblemFor(err); p != nil {
//		p.ServeHTTP(w, r)
//		return
//	}
//
// The error comes from inside a handler, which may have done something before. So the Problem has
// Started set and no RetryAfter. If you know that nothing was done, clear Started. An error that is a
// Problem already is returned as it is.
func ProblemFor(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if reason := adapter.ReasonOf(err); reason != 0 && reason != adapter.Misconfigured { // which is a lease that was released: no row says it
		return table[reason].problem(err, true)
	}
	return nil
}
