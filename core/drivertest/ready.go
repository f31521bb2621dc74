package drivertest

import (
	"errors"

	"github.com/holdfast-go/holdfast/core"
)

// readyCases are about health checks.
var readyCases = []testCase{
	{name: "AServiceThatAnswersIsReadyAndKeepsNothingOfTheQuestion", run: func(e *env) {
		locks, other := e.locker(e.Driver()), e.locker(e.Driver())
		for range 3 {
			e.noError(locks.Ready(e.Context()))
			e.noError(other.Ready(e.Context()))
		}
		e.nothingLeft()
	}},
	{name: "AServiceThatCannotBeReachedIsNotReady", gone: true, run: func(e *env) {
		if err := e.locker(e.Unreachable()).Ready(e.Context()); !errors.Is(err, core.ErrUnavailable) {
			e.Errorf("%v", err)
		}
	}},
}
