package key

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

// What can be wrong with the value of a source. They match core.ErrInvalid. A [SourceError] with
// another error says that the value is invalid.
var (
	// ErrMissing: there is no value, or it is empty.
	ErrMissing error = &fault{"missing or empty"}
	// ErrAmbiguous: there are several values that differ, and nobody knows which one counts.
	ErrAmbiguous error = &fault{"several values that differ"}
	// ErrTooLarge: the value is in something that is larger than what is looked at.
	ErrTooLarge error = &fault{"larger than what is looked at"}
)

type fault struct{ text string }

func (e *fault) Error() string { return "holdfast: invalid value: " + e.text }

// Is makes errors.Is(err, core.ErrInvalid) true.
func (e *fault) Is(target error) bool { return target == invalid.Err }

// ErrorType returns "invalid".
func (e *fault) ErrorType() string { return "invalid" }

// SourceError says for which source of a template there is no usable value. Its text has the
// template and the source, and nothing of the value.
type SourceError struct {
	Template string
	Source   string // its name, as it is written between the braces: "order.id" or "query:page"
	Err      error  // what is wrong with it, see [ErrMissing]
}

func (e *SourceError) Error() string {
	return fmt.Sprintf("holdfast: key %q: {%s}: %v", e.Template, e.Source, e.Err)
}

// Unwrap returns e.Err.
func (e *SourceError) Unwrap() error { return e.Err }

// Reason says in one word what is wrong with the value: "missing", "ambiguous", "too-large" or, for
// everything else, "invalid". Middleware tells it its clients.
func (e *SourceError) Reason() string {
	switch {
	case errors.Is(e.Err, ErrMissing):
		return "missing"
	case errors.Is(e.Err, ErrAmbiguous):
		return "ambiguous"
	case errors.Is(e.Err, ErrTooLarge):
		return "too-large"
	default:
		return "invalid"
	}
}

// ParseAll compiles a template, or several with a space between them: "account:{from} account:{to}". No
// template has a space. Each of several needs a source, so that a space that is a mistake, as in "order: {id}",
// is found. The same template twice is core.ErrInvalid, and so is a template that [Parse] refuses.
func ParseAll(templates string) ([]*Key, error) {
	var all []*Key
	several := strings.Split(templates, " ")
	for i, tmpl := range several {
		k, err := compile(tmpl)
		switch {
		case err != nil && len(several) > 1:
			return nil, invalid.Errorf("%v, in the list %s", err, quoteHead(templates, MaxName))
		case err != nil:
			return nil, invalid.Errorf("%v", err)
		case len(several) > 1 && len(k.parts) == 0:
			return nil, invalid.Errorf("key %s: %q has no source, and a space stands between several templates",
				quoteHead(templates, MaxName), tmpl)
		case slices.Contains(several[:i], tmpl):
			return nil, invalid.Errorf("key %q: given twice", tmpl)
		}
		all = append(all, k)
	}
	return all, nil
}
