package redlock

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/core/driver"
)

// open says whether err leaves open what a node has done.
func open(err error) bool {
	if err == nil || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrNotOwner) {
		return false
	}
	_, held := errors.AsType[*driver.Held](err)
	_, done := errors.AsType[*driver.Duplicate](err)
	return !held && !done
}

var errNoAnswer = driver.Unavailable(errors.New("redlock: a node has not answered in time"))

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

// noQuorum is an unknown outcome, with what some nodes said. Their certainties are not the
// quorum's: one node that nothing was sent to does not make the outcome known.
func noQuorum(said error) error {
	return driver.UnknownOutcome(fmt.Errorf("redlock: no quorum: %w", said))
}
