// Package invalid has the error for arguments that cannot work. Packages core and core/key share
// it, so errors.Is(err, core.ErrInvalid) is true for the errors of both.
package invalid

import "fmt"

// Err is what the errors of this package match.
var Err error = err{"holdfast: invalid"}

type err struct{ text string }

func (e err) Error() string      { return e.text }
func (err) Is(target error) bool { return target == Err }

// ErrorType returns "invalid", for the error.type attribute of metrics and spans.
func (err) ErrorType() string { return "invalid" }

// Errorf makes an error that matches [Err]. Its text begins with "holdfast: invalid".
func Errorf(format string, args ...any) error {
	return err{"holdfast: invalid " + fmt.Sprintf(format, args...)}
}
