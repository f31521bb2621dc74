package httpmw

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/httpmw/internal/door"
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
	TypeLost           = "https://holdfast-go.github.io/problems/lock-lost"
)

// retrySoon is when another try makes sense if nothing better is known.
const retrySoon = time.Second

// row is a row of the outcome table.
type row struct {
	typ    string
	status int
	title  string
	retry  bool   // it makes sense soon
	detail string // for a request that was not started; of TypeLost, for one that was
	inside string // for an error from inside a handler, which had begun; "" for what comes from the door alone
}

// table has a row for each door.Kind. It is not changed.
var table = [...]row{
	door.Held: {
		TypeHeld, http.StatusConflict, "Resource is in use", true,
		"Another request is working on the same resource. This one was not started.",
		"Another request is working on something that this one needs. What this one has done so far is not known.",
	},
	door.Duplicate: {
		TypeDuplicate, http.StatusConflict, "Already processed", false,
		"An earlier request has done this already. This one was not started.",
		"A part of what this request asks for was done by an earlier one. What else it has done is not known.",
	},
	door.BadKey: {
		TypeInvalidKey, http.StatusBadRequest, "Resource is not identified", false,
		"The request does not say, or not unambiguously, which resource it is for. It was not started.",
		"The request does not say, or not unambiguously, what it needs. What it has done so far is not known.",
	},
	door.TooLarge: {
		TypeTooLarge, http.StatusRequestEntityTooLarge, "Body is too large", false,
		"The body is larger than what the server looks at to find the resource. The request was not started.", "",
	},
	door.NoSource: {
		TypeRoute, http.StatusInternalServerError, "Route is misconfigured", false,
		"The server can not tell which resource a request of this route is for. It was not started.", "",
	},
	door.Unlockable: {
		TypeRoute, http.StatusInternalServerError, "Route is misconfigured", false,
		"The server can not lock a resource in the way that this route wants. The request was not started.", "",
	},
	door.Unavailable: {
		TypeUnavailable, http.StatusServiceUnavailable, "Lock service is unavailable", true,
		"The server can not tell now whether the resource is in use. The request was not started.",
		"The server can not tell now whether something that the request needs is in use. What it has done so far is not known.",
	},
	door.Ended: {
		TypeInterrupted, http.StatusServiceUnavailable, "Request was interrupted", false,
		"The request ended before it was known whether the resource is in use. It was not started.",
		"The request ended before it was known whether something that it needs is in use. What it has done so far is not known.",
	},
	door.Lost: {
		TypeLost, http.StatusServiceUnavailable, "Lock was lost", false,
		"The server lost its claim on the resource while it worked on it. What it has done is not known.",
		"The server lost its claim on the resource while it worked on it. What it has done is not known.",
	},
	door.BadRepeatKey: {
		TypeIdempotencyKey, http.StatusBadRequest, "Idempotency-Key is missing or invalid", false,
		"The request needs one Idempotency-Key of 1 to 255 visible ASCII characters. It was not started.", "",
	},
	door.OtherRequest: {
		TypeKeyReused, http.StatusUnprocessableEntity, "Idempotency-Key was used for another request", false,
		"An earlier request with this Idempotency-Key asked for something else. This one was not started.", "",
	},
}

// blame says which source of the key is at fault, and never with what value.
func (p *Problem) blame(err error) {
	source, ok := errors.AsType[*key.SourceError](err)
	if !ok || p.Type != TypeInvalidKey && p.Type != TypeTooLarge {
		return
	}
	p.Source, p.Reason = source.Source, source.Reason()
	switch p.Reason {
	case "missing":
		p.Detail = fmt.Sprintf("The request has no value for {%s}, which says which resource it is for. It was not started.", p.Source)
	case "ambiguous":
		p.Detail = fmt.Sprintf("The request has several values for {%s}, which says which resource it is for. It was not started.", p.Source)
	case "invalid":
		p.Detail = fmt.Sprintf("The request has no usable value for {%s}, which says which resource it is for. It was not started.", p.Source)
	}
}

// ProblemFor returns the [Problem] for an error of core, and nil for any other error. The doors use
// it for their own refusals, and those of Echo and Fiber for what a handler returns. It is exported for handlers
// of net/http, which return no error. ErrInvalid is treated as a request without a good value for the
// key:
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
	f, refused := errors.AsType[*door.Fault](err)
	if p, ok := errors.AsType[*Problem](err); ok && !refused {
		return p
	}
	kind := door.KindOf(err)
	if kind == 0 {
		return nil
	}
	r := table[kind]
	p := &Problem{Type: r.typ, Title: r.title, Status: r.status, Detail: r.detail, Err: err}
	if !refused {
		p.Started, p.Detail = true, r.inside
		return p
	}
	p.Err = f.Err
	p.Started = kind == door.Lost
	if errors.Is(f.Err, core.ErrDraining) || errors.Is(f.Err, core.ErrClosed) {
		p.Detail = "The server is about to stop and takes no new work. The request was not started."
	}
	if r.retry {
		p.RetryAfter = retrySoon
	}
	p.blame(f.Err)
	if held, ok := errors.AsType[*core.HeldError](err); ok && p.Type == TypeHeld {
		p.RetryAfter = held.RetryAfter
	}
	return p
}
