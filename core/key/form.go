package key

import (
	"errors"
	"fmt"
	"strings"
)

// Form says what the text of a value stands for, so that a value has one spelling in a name. A template
// gives it behind the source: {id|int}.
type Form uint8

const (
	// NoForm: the value is taken as it is. So are fields of messages and structs, which have a type.
	NoForm Form = iota
	// Int: an integer of any length, in decimal digits, with a sign or without. "042" and "+42" are "42".
	Int
	// UUID: "urn:uuid:…", "{…}", upper case and a UUID without hyphens are the same as the usual form.
	UUID
	// Text: the value is taken as it is, and that is meant so: "A7" and "a7" are two values.
	Text
)

var (
	errNoInt  error = &fault{"not an integer"}
	errNoUUID error = &fault{"not a UUID"}

	errForm = errors.New("the form behind '|' is int, uuid or text")
)

// Source is a source of a template.
type Source struct {
	Name string // as it is written between the braces, without the form: "order.id" or "query:page"
	Form Form
}

// String returns the source as it is written between the braces.
func (s Source) String() string {
	if s.Form == NoForm {
		return s.Name
	}
	return s.Name + "|" + s.Form.String()
}

// CheckForm says what is wrong with a source of text that has no form. An adapter calls it for each of its sources that
// are text.
func (s Source) CheckForm() error {
	if s.Form != NoForm {
		return nil
	}
	return fmt.Errorf("text has no type, so for a path, query or header value the template gives it: {%[1]s|int}, {%[1]s|uuid} or {%[1]s|text}", s.Name)
}

// String returns the form as it is written in a template, "" for NoForm.
func (f Form) String() string { return [...]string{"", "int", "uuid", "text"}[f] }

func parseForm(written string) (Form, error) {
	for f := Int; f <= Text; f++ {
		if written == f.String() {
			return f, nil
		}
	}
	return NoForm, errForm
}

// canonical returns the one spelling of a value that is not empty.
func (f Form) canonical(value string) (string, error) {
	switch f {
	case Int:
		return canonicalInt(value)
	case UUID:
		return canonicalUUID(value)
	default:
		return value, nil
	}
}

func canonicalInt(value string) (string, error) {
	digits := strings.TrimLeft(value, "+-")
	if digits == "" || len(value)-len(digits) > 1 || strings.Trim(digits, "0123456789") != "" {
		return "", errNoInt
	}
	switch digits = strings.TrimLeft(digits, "0"); {
	case digits == "":
		return "0", nil
	case value[0] == '-':
		return "-" + digits, nil
	}
	return digits, nil
}

// canonicalUUID takes what github.com/google/uuid and PostgreSQL take, except hyphens in other places.
func canonicalUUID(value string) (string, error) {
	v := strings.ToLower(value)
	if bare, ok := strings.CutPrefix(v, "urn:uuid:"); ok && len(bare) == usualUUID {
		v = bare
	} else if len(v) == usualUUID+2 && v[0] == '{' && v[len(v)-1] == '}' {
		v = v[1 : len(v)-1]
	}
	if len(v) == usualUUID && v[8] == '-' && v[13] == '-' && v[18] == '-' && v[23] == '-' {
		v = v[:8] + v[9:13] + v[14:18] + v[19:23] + v[24:]
	}
	if len(v) != usualUUID-4 || strings.Trim(v, "0123456789abcdef") != "" {
		return "", errNoUUID
	}
	return v[:8] + "-" + v[8:12] + "-" + v[12:16] + "-" + v[16:20] + "-" + v[20:], nil
}

const usualUUID = len("00000000-0000-0000-0000-000000000000")
