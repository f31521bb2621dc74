package driver

import "github.com/holdfast-go/holdfast/core/driver"

// Errors, and refusals, are the same in both contracts.
type (
	Held      = driver.Held
	Duplicate = driver.Duplicate
)

// The errors.
var (
	ErrNotOwner     = driver.ErrNotOwner
	ErrNotSent      = driver.ErrNotSent
	ErrUnmarked     = driver.ErrUnmarked
	ErrCannotAnswer = driver.ErrCannotAnswer
	ErrRefused      = driver.ErrRefused
)

// NotSent is driver.NotSent.
func NotSent(err error) error { return driver.NotSent(err) }

// Unavailable is driver.Unavailable.
func Unavailable(err error) error { return driver.Unavailable(err) }

// Refused is driver.Refused.
func Refused(err error) error { return driver.Refused(err) }

// Because is driver.Because.
func Because(err error, why string) error { return driver.Because(err, why) }

// Reason is driver.Reason.
func Reason(err error) string { return driver.Reason(err) }

// UnknownOutcome is driver.UnknownOutcome.
func UnknownOutcome(err error) error { return driver.UnknownOutcome(err) }

// CannotAnswer says whether err, of any method, means that nobody can get an answer now: see driver.Explain.
func CannotAnswer(err error) bool { return driver.Explain(err).Nobody }
