package redlock

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
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

// at says which node an error is of, so that somebody can go there.
func (s *store) at(node int, err error) error {
	if err == nil {
		return nil
	}
	where := ""
	if l, ok := s.nodes[node].(driver.Locator); ok && l.Location() != "" {
		where = " at " + l.Location()
	}
	return fmt.Errorf("node %d%s: %w", node, where, err)
}

// unheard says which nodes an error is of that stands for all that have not answered.
func (s *store) unheard(heard []bool, err error) error {
	for node, answered := range slices.Backward(heard) {
		if !answered {
			err = s.at(node, err)
		}
	}
	return err
}

// said joins what nodes said. The service cannot answer only if none of them has: where one
// said something else, the silence of the others is in the text only.
func said(errs []error) error {
	if len(errs) == 0 {
		return errNoAnswer
	}
	spoken := slices.DeleteFunc(slices.Clone(errs), driver.CannotAnswer)
	if len(spoken) == 0 {
		spoken = errs
	}
	return &mixed{errors.Join(spoken...), inLine(errs)}
}

// inLine has the text of all in one line, for logs.
func inLine(errs []error) string {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
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
