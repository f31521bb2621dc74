package backend

import "github.com/holdfast-go/holdfast/core"

// unreachableError matches core.ErrUnavailable: the URL is right, as far as that is known, but nobody answers.
type unreachableError struct{ error }

func (e *unreachableError) Is(target error) bool { return target == core.ErrUnavailable }

func (e *unreachableError) Unwrap() error { return e.error }
