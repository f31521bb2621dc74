package fence

import "fmt"

// Each error has a method ErrorType() string, for logs and metrics.
var (
	// ErrStale: the resource has seen a newer holder. The writer's lease has ended, even if the
	// writer does not know it, and nothing of its write was kept. Do not retry.
	ErrStale error = &sentinel{"stale", "a newer holder has written"}

	// ErrInvalid: an impossible fence, key or argument. Nothing was sent.
	ErrInvalid error = &sentinel{"invalid", "invalid"}
)

type sentinel struct{ kind, text string }

func (e *sentinel) Error() string     { return "fence: " + e.text }
func (e *sentinel) ErrorType() string { return e.kind }

// StaleError is a refusal, with what the resource knows. It matches [ErrStale].
type StaleError struct {
	Key   string
	Fence uint64 // of the writer
	Seen  uint64 // the largest one that the resource has seen
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("fence: %q has seen fence %d: %d is of an earlier holder", e.Key, e.Seen, e.Fence)
}

// Is makes errors.Is(err, ErrStale) true.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// ErrorType returns "stale".
func (e *StaleError) ErrorType() string { return "stale" }

type invalidError struct{ text string }

func (e *invalidError) Error() string        { return "fence: invalid " + e.text }
func (e *invalidError) Is(target error) bool { return target == ErrInvalid }
func (e *invalidError) ErrorType() string    { return "invalid" }
