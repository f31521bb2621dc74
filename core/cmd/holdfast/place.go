package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/cmd/holdfast/internal/backend"
	"github.com/holdfast-go/holdfast/core/operate"
)

// place is where the locks are.
type place struct {
	url    string
	prefix *string // nil: that of the URL
	opts   backend.Options
}

// define adds the flags that every command has. They may stand before the command, too.
func (at *place) define(flags *flag.FlagSet) {
	set := func(p *string) func(string) error {
		return func(text string) error { *p = text; return nil }
	}
	// Func shows no default, which may have a password.
	flags.Func("url", "`URL` of the lock service ($HOLDFAST_URL)", set(&at.url))
	flags.Func("prefix", "what the keys begin with; replaces prefix= of the URL", func(text string) error {
		at.prefix = &text
		return nil
	})
}

// service is an open place.
type service struct {
	*backend.Backend

	locks *core.Locker
}

// errNoURL: a default such as localhost would let every machine lock for itself.
var errNoURL = errors.New("no lock service: set HOLDFAST_URL or give -url, such as redis://127.0.0.1:6379; holdfast -h has more forms")

func (at *place) open(ctx context.Context, opts ...core.NewOption) (*service, error) {
	if at.url == "" {
		return nil, usageError{errNoURL}
	}
	at.opts.Prefix = at.prefix
	b, err := backend.Open(ctx, at.url, at.opts)
	if err != nil {
		if errors.Is(err, core.ErrUnavailable) || ctx.Err() != nil {
			return nil, err
		}
		return nil, usageError{err}
	}
	locks, err := core.New(b.Driver, opts...)
	if err != nil {
		b.Close()
		return nil, err
	}
	return &service{b, locks}, nil
}

const callTimeout = 5 * time.Second

// answers asks one question that is answered at once. A walk through all names may take long, and so has no
// limit: without an answer it would hang.
func (s *service) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := operate.New(s.locks).Inspect(ctx, anyName)
	if errors.Is(err, core.ErrUnavailable) {
		return &silentError{s.Place, err}
	}
	return err
}

// anyName is asked about where no name is meant; nobody need hold it.
const anyName = "holdfast.ready"

// silentError is a lock service that does not answer, for those who can do something about it.
type silentError struct {
	place string
	err   error
}

func (e *silentError) Error() string {
	reason := strings.TrimPrefix(trim(e.err), fmt.Sprintf("inspect %q: ", anyName))
	return fmt.Sprintf("%s: %s; check that it is up, and that HOLDFAST_URL or -url is right", e.place, reason)
}

func (e *silentError) Unwrap() error { return e.err }

// close takes a while at most: what it holds still ends with its TTL.
func (s *service) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	_ = s.locks.Close(ctx)
	s.Close()
}

// usageError is the user's: the exit status says so.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }
