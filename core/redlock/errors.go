package redlock

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast/core/driver"
)

// unsent is the error for a call whose context had ended before it began.
func unsent(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return errors.Join(driver.ErrNotSent, err)
	}
	return nil
}

// open says whether err leaves open what a node has done.
func open(err error) bool {
	if err == nil || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrNotOwner) {
		return false
	}
	_, held := errors.AsType[*driver.Held](err)
	_, done := errors.AsType[*driver.Duplicate](err)
	return !held && !done
}

var errNoAnswer error = &silent{errors.New("redlock: a node has not answered in time")}

// silent is driver.ErrCannotAnswer with an error, whose text it keeps.
type silent struct{ error }

func (e *silent) Unwrap() []error { return []error{driver.ErrCannotAnswer, e.error} }

// said joins what nodes said. The service cannot answer only if none of them has: where one
// said something else, the silence of the others is in the text only.
func said(errs []error) error {
	if len(errs) == 0 {
		return errNoAnswer
	}
	all := errors.Join(errs...)
	spoken := slices.DeleteFunc(slices.Clone(errs), driver.CannotAnswer)
	if len(spoken) == 0 {
		return all
	}
	return &mixed{errors.Join(spoken...), all.Error()}
}

type mixed struct {
	error
	text string
}

func (e *mixed) Error() string { return e.text }
func (e *mixed) Unwrap() error { return e.error }

// notSent is driver.ErrNotSent with what the nodes said, whose text it keeps.
type notSent struct{ error }

func (e *notSent) Unwrap() []error { return []error{driver.ErrNotSent, e.error} }

// noQuorum is an unknown outcome, with what some nodes said. Their certainties are not the
// quorum's: one node that nothing was sent to does not make the outcome known.
type noQuorum struct{ said error }

func (e *noQuorum) Error() string { return "redlock: no quorum: " + e.said.Error() }

func (e *noQuorum) As(target any) bool { return errors.As(e.said, target) }

func (e *noQuorum) Is(target error) bool {
	return target != driver.ErrNotSent && target != driver.ErrNotOwner && errors.Is(e.said, target)
}
