package httpmw

import (
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw/internal/door"
)

// The types of a [Problem], explained in docs/problems.md. They are identifiers: compare them, do not
// fetch them. They never change. They are https URLs because RFC 9457 requires an absolute URI that
// can become a page later. "urn:holdfast:…" could not, because its namespace is not registered.
const (
	TypeHeld        = "https://holdfast-go.github.io/problems/held"
	TypeDuplicate   = "https://holdfast-go.github.io/problems/already-processed"
	TypeInvalidKey  = "https://holdfast-go.github.io/problems/invalid-key"
	TypeRoute       = "https://holdfast-go.github.io/problems/misconfigured-route"
	TypeUnavailable = "https://holdfast-go.github.io/problems/unavailable"
	TypeInterrupted = "https://holdfast-go.github.io/problems/interrupted"
	TypeLost        = "https://holdfast-go.github.io/problems/lock-lost"
)

// retrySoon is when another try makes sense if nothing better is known.
const retrySoon = time.Second

// row is a row of the outcome table.
func row(kind door.Kind) *Problem {
	switch kind {
	case door.Held, door.HeldLocked:
		p := &Problem{
			Type: TypeHeld, Status: http.StatusConflict, Title: "Resource is in use", RetryAfter: retrySoon,
			Detail: "Another request is working on the same resource. This one was not started.",
		}
		if kind == door.HeldLocked {
			p.Status = http.StatusLocked
		}
		return p
	case door.Duplicate:
		return &Problem{
			Type: TypeDuplicate, Status: http.StatusConflict, Title: "Already processed",
			Detail: "An earlier request has done this already. This one was not started.",
		}
	case door.BadKey:
		return &Problem{
			Type: TypeInvalidKey, Status: http.StatusBadRequest, Title: "Resource is not identified",
			Detail: "The request does not say, or not unambiguously, which resource it is for. It was not started.",
		}
	case door.NoSource:
		return &Problem{
			Type: TypeRoute, Status: http.StatusInternalServerError, Title: "Route is misconfigured",
			Detail: "The server can not tell which resource a request of this route is for. It was not started.",
		}
	case door.Unlockable:
		return &Problem{
			Type: TypeRoute, Status: http.StatusInternalServerError, Title: "Route is misconfigured",
			Detail: "The server can not lock a resource in the way that this route wants. The request was not started.",
		}
	case door.Unavailable:
		return &Problem{
			Type: TypeUnavailable, Status: http.StatusServiceUnavailable, Title: "Lock service is unavailable",
			RetryAfter: retrySoon,
			Detail:     "The server can not tell now whether the resource is in use. The request was not started.",
		}
	case door.Ended:
		return &Problem{
			Type: TypeInterrupted, Status: http.StatusServiceUnavailable, Title: "Request was interrupted",
			Detail: "The request ended before it was known whether the resource is in use. It was not started.",
		}
	case door.Lost:
		return &Problem{
			Type: TypeLost, Status: http.StatusServiceUnavailable, Title: "Lock was lost",
			Detail: "The server lost its claim on the resource while it worked on it. What it has done is not known.",
		}
	default:
		return nil
	}
}

// ProblemFor returns the [Problem] for an error of core, and nil for any other error. The middleware
// uses it for its own refusals. It is exported for handlers that call core themselves, because the
// middleware does not change what a handler returns. ErrInvalid is treated as a request without a
// good value for the key:
//
//	err := locks.Do(ctx, name, work)
//	if p := httpmw.ProblemFor(err); p != nil {
//		p.ServeHTTP(w, r)
//		return
//	}
func ProblemFor(err error) *Problem {
	p := row(door.KindOf(err))
	if p == nil {
		return nil
	}
	p.Err = err
	if f, ok := errors.AsType[*door.Fault](err); ok {
		p.Err = f.Err
	}
	if held, ok := errors.AsType[*core.HeldError](err); ok && p.Type == TypeHeld {
		p.RetryAfter = held.RetryAfter
	}
	return p
}
