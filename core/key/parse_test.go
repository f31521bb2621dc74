package key

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

func TestParseKeyRefusesBrokenTemplates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tmpl, why string }{
		{"", "empty template"},
		{"order:{id", "brace without its partner"},
		{"order:id}", "brace without its partner"},
		{"order:{id}}", "brace without its partner"},
		{"order:{{id}}", "brace without its partner"},
		{"order:{a{b}", "brace without its partner"},
		{"order:}{", "brace without its partner"},
		{"{", "brace without its partner"},
		{"}", "brace without its partner"},
		{"order:\xff{id}", "not valid UTF-8"},
		{"order:{\xff}", "not valid UTF-8"},
		{"order {id}", "' ' is not allowed"},
		{"order:{id} ", "' ' is not allowed"},
		{"order:\u00a0{id}", `'\u00a0' is not allowed`},
		{"order:\u2028", `'\u2028' is not allowed`},
		{"order:\n{id}", `'\n' is not allowed`},
		{"order:\x00", `'\x00' is not allowed`},
		{"order:\u0085", `'\u0085' is not allowed`},
		{"order:\x7f", `'\x7f' is not allowed`},
		{"100%:{id}", "'%' is not allowed"},
		{"{id}:100%", "'%' is not allowed"},
	} {
		k, err := Parse(tt.tmpl)
		if k != nil || !errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("Parse(%q) = %v, %v, want invalid.Err with %q", tt.tmpl, k, err, tt.why)
		}
	}
}

func TestParseKeyRefusesBrokenSources(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ source, why string }{
		{"", "empty"},
		{":x", "kind"},
		{"query:", "empty name"},
		{"Query:x", "kind"},
		{"http2:x", "kind"},
		{"qüery:x", "kind"},
		{"a.b:x", "kind"},
		{" query:x", "kind"},
		{"query:a:b", "':' is not allowed"},
		{".", "empty name"},
		{".a", "empty name"},
		{"a.", "empty name"},
		{"a..b", "empty name"},
		{"body:a..b", "empty name"},
		{"a b", "' ' is not allowed"},
		{"id ", "' ' is not allowed"},
		{"a\tb", `'\t' is not allowed`},
		{"a\u00a0b", `'\u00a0' is not allowed`},
		{"a\x00", `'\x00' is not allowed`},
		{"a|b", "the form behind '|'"},
		{"a?", "'?' is not allowed"},
		{"a=b", "'=' is not allowed"},
		{"a,b", "',' is not allowed"},
		{"a/b", "'/' is not allowed"},
		{"%61", "'%' is not allowed"},
	} {
		k, err := Parse("order:{" + tt.source + "}")
		if k != nil || !errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("source %q: %v, %v, want invalid.Err with %q", tt.source, k, err, tt.why)
		}
	}
}

func TestParseKeyTakesEveryKind(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"query:x", "header:X-Tenant", "header:__Host-id", "query:filter[id]", "body:a.b", "metadata:x",
		"metadata:x-tenant", "grpc:service", "asynq:queue", "unheardof:x",
	} {
		k, err := Parse("{" + source + "}")
		if err != nil || k.Sources()[0] != (Source{Name: source}) {
			t.Errorf("source %q: %v, %v", source, k, err)
		}
	}
}

func TestParseKeyWantsASeparatorBetweenSources(t *testing.T) {
	t.Parallel()
	for _, tmpl := range []string{
		"{a}{b}", "{a}x{b}", "{a}7{b}", "{a}ß{b}", "{a}٣{b}", "{a}\u0301{b}", "{a}\u200b{b}",
		"{a}:{b}{c}", "{a}{b}:{c}", "x:{a}and{b}:y",
	} {
		_, err := Parse(tmpl)
		if !errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), "put ':' between them") {
			t.Errorf("Parse(%q): %v, want invalid.Err that says what to do", tmpl, err)
		}
	}
	for _, tmpl := range []string{"{a}:{b}", "{a}-{b}", "{a}x_y{b}", "{a}–{b}", "{a}+{b}", "{a}€{b}/{c}"} {
		if _, err := Parse(tmpl); err != nil {
			t.Errorf("Parse(%q): %v", tmpl, err)
		}
	}
}

func TestParseKeyRefusesTemplatesWhoseEveryNameIsTooLong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tmpl string
		ok   bool
	}{
		{strings.Repeat("x", 200), true},
		{strings.Repeat("x", 201), false},
		{strings.Repeat("x", 199) + "{id}", true},
		{strings.Repeat("x", 200) + "{id}", false},
		{strings.Repeat("x", 100) + "{a}:{b}" + strings.Repeat("x", 97), true},
		{strings.Repeat("x", 100) + "{a}:{b}" + strings.Repeat("x", 98), false},
		{strings.Repeat("é", 100), true},
		{"{id}" + strings.Repeat("é", 100), false},
		{"{" + strings.Repeat("x", 1000) + "}", true},
	} {
		_, err := Parse(tt.tmpl)
		if tt.ok != (err == nil) || !tt.ok && !errors.Is(err, invalid.Err) {
			t.Errorf("template of %d bytes: %v, want accepted: %t", len(tt.tmpl), err, tt.ok)
		}
	}
}

func TestParseKeyErrorsAreBounded(t *testing.T) {
	t.Parallel()
	for _, tmpl := range []string{
		strings.Repeat("\x00", 1<<20), strings.Repeat("{", 1<<20), "{" + strings.Repeat("\x00", 1<<20) + "}",
		strings.Repeat("{a}", 1<<18), strings.Repeat("x", 1<<20) + "}",
	} {
		if _, err := Parse(tmpl); err == nil || len(err.Error()) > 2000 {
			t.Errorf("error of %d bytes", len(err.Error()))
		}
	}
}
