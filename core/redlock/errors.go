package redlock

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core/driver"
)

var errNoAnswer = driver.Unavailable(errors.New("redlock: a node has not answered in time"))

// errShorter stands for the answer of a node that has renewed, but may be asked for a shorter TTL yet.
var errShorter = errors.New("redlock: a command of this process with a shorter TTL may still be on its way there")

// errOwn stands for the answer of a node that the name is held there, by an earlier attempt of this process.
var errOwn = errors.New("redlock: an earlier attempt of this process is still there")

// at says which node an error is of, so that somebody can go there.
func (s *Store) at(node int, err error) error {
	if err == nil {
		return nil
	}
	where := ""
	if at := s.nodes[node].Capabilities().Location; at != "" {
		where = " at " + at
	}
	return fmt.Errorf("node %d%s: %w", node, where, err)
}

// said joins what nodes said. The service cannot answer only if none of them has: where one
// said something else, the silence of the others is in the text only.
func said(errs []error) error {
	if len(errs) == 0 {
		return errNoAnswer
	}
	spoken := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return driver.Explain(err).Nobody })
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
