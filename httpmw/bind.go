package httpmw

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// Bind returns a handler that decodes each request to a T, holds the lock that the template names, and calls
// handler with the T. It decodes once, before the lock is taken: so the lock is for what the handler reads, whatever a client puts
// into path, query and body. A handler that reads them again can find other values.
//
//	mux.Handle("POST /pay", httpmw.Bind(locks, "order:{OrderID}", httpmw.JSON[PayRequest], pay))
//
//	func pay(w http.ResponseWriter, r *http.Request, req *PayRequest) { … }
//
// The sources of the template are the fields of T by their names in Go, {OrderID} or {Order.ID}: strings, integers, bools
// and types that implement [encoding.TextMarshaler]. They need no form. An empty string, 0 and false count as missing.
//
// An error of decode is answered with 400, or with 413 if it is [key.ErrTooLarge], and becomes the Problem's Err.
// Everything else is as with [Lock]. Bind panics on a key or an option that cannot work; [NewBind] returns an error
// instead.
func Bind[T any](
	l *core.Locker, template string, decode func(*http.Request) (*T, error), handler func(http.ResponseWriter, *http.Request, *T), opts ...core.Option,
) http.Handler {
	return rule.Must[http.Handler]("httpmw")(NewBind(Config{Locker: l, Key: template, Options: opts}, decode, handler))
}

// NewBind is [Bind] with all settings but KeyFunc and MaxBody, which do not apply. Settings that cannot work are
// [core.ErrInvalid].
func NewBind[T any](
	c Config, decode func(*http.Request) (*T, error), handler func(http.ResponseWriter, *http.Request, *T),
) (http.Handler, error) {
	if decode == nil || handler == nil {
		return nil, fmt.Errorf("%w: Bind without a function", core.ErrInvalid)
	}
	l, err := newLock(c, rule.Fields[*request, T]())
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := decode(r)
		if err != nil {
			answer(w, r, ProblemOf(adapter.Outcome{Reason: adapter.BadKey, Err: err}), l.ErrorHandler)
			return
		}
		l.serve(w, r, req, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(w, r, req) }))
	}), nil
}

// maxJSON is the size of the largest body that JSON reads.
const maxJSON = 1 << 20

// JSON decodes a body for [Bind], with encoding/json. The Content-Type has to be application/json, once and in exactly
// this spelling, and the body one JSON value of at most 1 MiB. A larger one is [key.ErrTooLarge].
func JSON[T any](r *http.Request) (*T, error) {
	if !rule.IsJSON(r.Header["Content-Type"]) {
		return nil, rule.ErrNotJSON
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxJSON+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxJSON:
		return nil, key.ErrTooLarge
	}
	req := new(T)
	if err := json.Unmarshal(body, req); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: the body is not the JSON of a %T", core.ErrInvalid, *req), err)
	}
	return req, nil
}
