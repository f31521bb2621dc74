package key

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

func TestParseKeyRefusesBrokenTemplatesAndSources(t *testing.T) {
	t.Parallel()
	for why, templates := range map[string][]string{
		"empty template": {""},
		"brace without its partner": {
			"order:{id", "order:id}", "order:{id}}", "order:{{id}}", "order:{a{b}", "order:}{", "{", "}",
		},
		"not valid UTF-8":         {"order:\xff{id}", "order:{\xff}"},
		"' ' is not allowed":      {"order {id}", "order:{id} ", "{a b}", "{id }"},
		`'\u00a0' is not allowed`: {"order:\u00a0{id}", "{a\u00a0b}"},
		`'\u2028' is not allowed`: {"order:\u2028"},
		`'\n' is not allowed`:     {"order:\n{id}"},
		`'\t' is not allowed`:     {"{a\tb}"},
		`'\x00' is not allowed`:   {"order:\x00", "{a\x00}"},
		`'\u0085' is not allowed`: {"order:\u0085"},
		`'\x7f' is not allowed`:   {"order:\x7f"},
		"'%' is not allowed":      {"100%:{id}", "{id}:100%", "{%61}"},
		"':' is not allowed":      {"{query:a:b}"},
		"'?' is not allowed":      {"{a?}"},
		"'=' is not allowed":      {"{a=b}"},
		"',' is not allowed":      {"{a,b}"},
		"'/' is not allowed":      {"{a/b}"},
		"empty":                   {"{}"},
		"empty name":              {"{query:}", "{.}", "{.a}", "{a.}", "{a..b}", "{body:a..b}"},
		"kind":                    {"{:x}", "{Query:x}", "{http2:x}", "{qüery:x}", "{a.b:x}", "{ query:x}"},
		"the form behind '|'":     {"{a|b}"},
		"put ':' between them": {
			"{a}{b}", "{a}x{b}", "{a}7{b}", "{a}ß{b}", "{a}٣{b}", "{a}\u0301{b}", "{a}\u200b{b}", "{a}:{b}{c}", "{a}{b}:{c}", "x:{a}and{b}:y",
		},
	} {
		for _, tmpl := range templates {
			if k, err := Parse(tmpl); k != nil || !errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), why) {
				t.Errorf("Parse(%q) = %v, %v, want invalid.Err with %q", tmpl, k, err, why)
			}
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

func TestParseKeyTakesEverySeparator(t *testing.T) {
	t.Parallel()
	for _, tmpl := range []string{"{a}:{b}", "{a}-{b}", "{a}x_y{b}", "{a}–{b}", "{a}+{b}", "{a}€{b}/{c}"} {
		if _, err := Parse(tmpl); err != nil {
			t.Errorf("Parse(%q): %v", tmpl, err)
		}
	}
}

func TestParseKeyRefusesTemplatesWhoseEveryNameIsTooLong(t *testing.T) {
	t.Parallel()
	x, e := strings.Repeat("x", 100), strings.Repeat("é", 100)
	for tmpl, ok := range map[string]bool{
		x + x: true, x + x + "x": false, x + x[1:] + "{id}": true, x + x + "{id}": false,
		x + "{a}:{b}" + x[3:]: true, x + "{a}:{b}" + x[2:]: false, e: true, "{id}" + e: false, "{" + strings.Repeat(x, 10) + "}": true,
	} {
		if _, err := Parse(tmpl); ok != (err == nil) || !ok && !errors.Is(err, invalid.Err) {
			t.Errorf("template of %d bytes: %v, want accepted: %t", len(tmpl), err, ok)
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
