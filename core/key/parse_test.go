package key

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

func TestParseKeyTakesTemplatesAndSaysWhyItRefusesOthers(t *testing.T) {
	t.Parallel()
	x, e := strings.Repeat("x", 100), strings.Repeat("é", 100)
	for why, templates := range map[string][]string{
		"": {
			"{query:x}", "{header:__Host-id}", "{query:filter[id]}", "{grpc:service}", "{unheardof:x}", // every kind
			"{a}:{b}", "{a}-{b}", "{a}x_y{b}", "{a}–{b}", "{a}+{b}", "{a}€{b}/{c}", // every separator
			x + x, x + x[1:] + "{id}", x + "{a}:{b}" + x[3:], e, "{" + strings.Repeat(x, 10) + "}", // some name is short enough
		},
		"empty template":            {""},
		"brace without its partner": {"order:{id", "order:id}", "order:{id}}", "order:{{id}}", "order:}{", "{", "}"},
		"not valid UTF-8":           {"order:\xff{id}", "order:{\xff}"},
		"' ' is not allowed":        {"order {id}", "{a b}"},
		`'\u2028' is not allowed`:   {"order:\u2028"},
		`'\x00' is not allowed`:     {"order:\x00", "{a\x00}"},
		"'%' is not allowed":        {"100%:{id}", "{a}%sha256:x", "{%61}"},
		"':' is not allowed":        {"{query:a:b}"},
		"'?' is not allowed":        {"{a?}"},
		"'/' is not allowed":        {"{a/b}"},
		"empty":                     {"{}", "{|int}"},
		"empty name":                {"{query:}", "{.}", "{.a}", "{a.}", "{a..b}", "{body:a..b}", "{query:|int}"},
		"kind":                      {"{:x}", "{Query:x}", "{http2:x}", "{qüery:x}", "{a.b:x}", "{ query:x}"},
		"the form behind '|'":       {"{a|b}", "{id|}", "{id|INT}", "{id| int}", "{id|int|int}"},
		"put ':' between them":      {"{a}{b}", "{a}x{b}", "{a}7{b}", "{a}ß{b}", "{a}\u0301{b}", "{a}\u200b{b}", "{a}:{b}{c}", "x:{a}and{b}:y"},
		"every name would have 201": {x + x + "x", x + x + "{id}", x + "{a}:{b}" + x[2:], "{id}" + e},
	} {
		for _, tmpl := range templates {
			k, err := Parse(tmpl)
			if (err == nil) != (why == "") || err == nil && k.String() != tmpl {
				t.Errorf("Parse(%q) = %v, %v", tmpl, k, err)
			}
			if err != nil && (k != nil || !errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), why)) {
				t.Errorf("Parse(%q) = %v, %v, want invalid.Err with %q", tmpl, k, err, why)
			}
		}
	}
}
