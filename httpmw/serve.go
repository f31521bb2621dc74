package httpmw

import (
	"context"
	"net/http"
	"regexp"
	"slices"

	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// lock is a rule made ready.
type lock struct {
	Config

	rule *rule.Rule[*request]
}

// serve calls next under the lock.
func (l *lock) serve(w http.ResponseWriter, r *http.Request, bound any, next http.Handler) {
	if l.Skipper != nil && l.Skipper(r) {
		next.ServeHTTP(w, r)
		return
	}
	req := &request{rule.HTTP{R: r, Decoded: bound}}
	out := l.rule.Run(r.Context(), req, func(ctx context.Context, seen *observe.Response) error {
		inside := r.WithContext(ctx)
		defer rule.HandBack(r, inside)
		next.ServeHTTP(seen.Wrap(w), inside)
		return nil
	})
	if p := ProblemOf(out); p != nil {
		answer(w, r, p, l.ErrorHandler)
	}
}

func answer(w http.ResponseWriter, r *http.Request, p *Problem, handler func(http.ResponseWriter, *http.Request, *Problem)) {
	if handler != nil {
		handler(w, r, p)
		return
	}
	p.ServeHTTP(w, r)
}

// request is one that net/http, or a router that sets path values, has routed.
type request struct{ rule.HTTP }

// Operation implements rule.Request.
func (r *request) Operation() rule.Operation {
	return rule.Operation{Method: r.R.Method, Route: r.R.Pattern}
}

// wildcard is a path parameter of a route's pattern: {name} or {name...}, or another router's
// {name:regexp}.
var wildcard = regexp.MustCompile(`\{([^{}:.$]+)(?:\.{3})?(?::|\})`)

// Param implements rule.Request.
func (r *request) Param(name string) (string, error) {
	v := r.R.PathValue(name)
	is := func(m []string) bool { return m[1] == name }
	if v == "" && !slices.ContainsFunc(wildcard.FindAllStringSubmatch(r.R.Pattern, -1), is) {
		return "", rule.ErrRoute
	}
	return r.Unescaped(v)
}
