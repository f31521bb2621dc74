package httpmw

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// maxProblem is how much of a body is read to find a problem in it. Ours have a few hundred bytes.
const maxProblem = 64 << 10

// ParseProblem returns the [Problem] in a response of a service that uses this package, and nil for any
// other response. The body can be read afterwards as if nobody had. As an error the Problem matches
// what core calls it:
//
//	if p := httpmw.ParseProblem(res); errors.Is(p, core.ErrHeld) { … }
//
// A handler that calls another service should not pass its Problem on: "not started" is true of the
// other one only. Echo's doors see to that when a handler returns one.
func ParseProblem(res *http.Response) *Problem {
	if res == nil || res.StatusCode < http.StatusBadRequest {
		return nil
	}
	if t, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); t != "application/problem+json" {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxProblem))
	rest := io.Reader(res.Body)
	if err != nil {
		rest = failed{err}
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), res.Body}
	var p Problem
	whole := err == nil && json.Unmarshal(body, &p) == nil
	if p.Err = meaning(p.Type); !whole || p.Status != res.StatusCode || p.Err == nil {
		return nil
	}
	if s, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 31); err == nil {
		p.RetryAfter = time.Duration(s) * time.Second
	}
	p.remote = true
	return &p
}

type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// meaning is what core calls a type, nil if it is none of ours.
func meaning(typ string) error {
	switch typ {
	case TypeHeld:
		return core.ErrHeld
	case TypeDuplicate:
		return core.ErrDuplicate
	case TypeInvalidKey, TypeTooLarge, TypeRoute, TypeIdempotencyKey, TypeKeyReused:
		return core.ErrInvalid
	case TypeUnavailable, TypeInterrupted:
		return core.ErrUnavailable
	case TypeLost:
		return core.ErrLost
	case TypeDeadlock:
		return core.ErrDeadlock
	default:
		return nil
	}
}

// own is p as the answer of a handler of this service. If p is the answer of another service, that it
// was not started says nothing of this one.
func (p *Problem) own() *Problem {
	if !p.remote {
		return p
	}
	q := *p
	q.remote, q.Started, q.RetryAfter, q.Source, q.Reason = false, true, 0, "", ""
	q.Detail = "Another service has refused a part of what this request asks for. What it has done so far is not known."
	return &q
}
