//go:build !unix

package servers

import "testing"

// wantGone looks at nothing: where there are no signals, wantRefused has to say enough.
func wantGone(*testing.T, int) {}
