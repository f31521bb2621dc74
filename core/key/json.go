package key

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

// JSONValue finds the value of a key's source in a JSON document. It is what the middleware uses for
// {body:a.b} and, for tasks, {a.b}. doc must be exactly one JSON value in valid UTF-8. path has the
// names of object members, outermost first, joined by dots. Their case counts.
//
// A string comes back as it is, an integer of any length as its digits, and true and false as these
// words. So 42 and "42" make the same name.
//
// These are core.ErrInvalid:
//
//   - a member that is missing, null or an empty string, which is [ErrMissing] too;
//   - a fraction, an exponent, -0, an object or an array;
//   - half a surrogate pair;
//   - in an object on the path, a second member of the same name, or one whose name differs only in
//     case, as [strings.EqualFold] compares. [encoding/json] would give the last of them to the
//     handler, and the lock would be on something else than the work. It is [ErrAmbiguous] too.
//
// The error names the path, and holds nothing of the document, which comes from outside. The time
// is proportional to the size of doc times the number of names in path. Only the result is
// allocated.
func JSONValue(doc []byte, path string) (string, error) {
	if !utf8.Valid(doc) || !json.Valid(doc) {
		return "", invalid.Errorf("JSON for %q: not exactly one JSON value in UTF-8", path)
	}
	value := bytes.TrimLeft(doc, " \t\r\n")
	for name := range strings.SplitSeq(path, ".") {
		if name == "" || !utf8.ValidString(name) {
			return "", invalid.Errorf("JSON path %q: not made of names with dots between them", path)
		}
		var problem string
		if value, problem = jsonMember(value, name); problem != "" {
			return "", problemOf(problem, "JSON value %q: %q %s", path, name, problem)
		}
	}
	s, problem := jsonScalar(value)
	if problem != "" {
		return "", problemOf(problem, "JSON value %q: %s", path, problem)
	}
	return s, nil
}

// The problems that [ErrMissing] and [ErrAmbiguous] stand for.
const (
	problemMissing = "is missing (its case counts)"
	problemNull    = "null"
	problemEmpty   = "empty"
	problemTwice   = "is there more than once, ignoring case"
)

func problemOf(problem, format string, args ...any) error {
	err := invalid.Errorf(format, args...)
	switch problem {
	case problemMissing, problemNull, problemEmpty:
		return &kindError{err, ErrMissing}
	case problemTwice:
		return &kindError{err, ErrAmbiguous}
	default:
		return err
	}
}

// kindError is an error that tells more than its kind does.
type kindError struct {
	error

	kind error
}

func (e *kindError) Is(target error) bool { return target == e.kind }

// Unwrap returns the error itself.
func (e *kindError) Unwrap() error { return e.error }

// jsonMember returns the raw value of the only member of object that has this name.
func jsonMember(object []byte, name string) (value []byte, problem string) {
	if object[0] != '{' {
		return nil, "is looked for in something that is not an object"
	}
	similar := 0
	c := jsonCursor{text: object, at: 1}
	for member, v, ok := c.member(); ok; member, v, ok = c.member() {
		same, folded := jsonNameIs(member, name)
		if folded {
			similar++
		}
		if same {
			value = v
		}
	}
	switch {
	case similar > 1:
		return nil, problemTwice
	case value == nil:
		return nil, problemMissing
	}
	return value, ""
}

func jsonScalar(raw []byte) (s, problem string) {
	switch raw[0] {
	case '"':
		return jsonString(raw[1 : len(raw)-1])
	case 't':
		return "true", ""
	case 'f':
		return "false", ""
	case 'n':
		return "", problemNull
	case '{', '[':
		return "", "an object or an array"
	}
	if bytes.ContainsAny(raw, ".eE") || string(raw) == "-0" {
		return "", "a number that is not written as an integer"
	}
	return string(raw), ""
}

// jsonString decodes the inside of a string. It refuses half a surrogate pair, because readers
// disagree about it. Go reads every one of them as U+FFFD, which would make one name of many.
func jsonString(raw []byte) (s, problem string) {
	if len(raw) == 0 {
		return "", problemEmpty
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), ""
	}
	var b strings.Builder
	b.Grow(len(raw))
	for len(raw) > 0 {
		r, size, ok := jsonRune(raw)
		if !ok {
			return "", "half a surrogate pair"
		}
		b.WriteRune(r)
		raw = raw[size:]
	}
	return b.String(), ""
}
