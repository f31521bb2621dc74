// Package hostile has what must not get through a middleware as it is. The tests of every middleware send
// it through the real thing, and check the names of the locks that come out.
package hostile

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core/key"
)

// Template is the key that the middleware under test have, with a source of their own in place of
// {v}.
const Template = "order:{v}:x"

// Values are all different. They have broken lock names, URLs, logs and text protocols before.
func Values() map[string]string {
	return map[string]string{
		"separator":            "1:2",
		"separator escaped":    "1%3A2",
		"separator twice":      "1%253A2",
		"the key itself":       "1:x:order:1",
		"braces":               "{}",
		"cluster slot":         "{1}",
		"star":                 "*",
		"traversal":            "../../1",
		"traversal escaped":    "..%2f..%2f1",
		"slash escaped":        "%2f",
		"slash":                "/",
		"dot":                  ".",
		"two dots":             "..",
		"space":                "1 ",
		"plus":                 "1+",
		"quotes":               `1"'\`,
		"line break":           "1\r\nX-Order: 2",
		"log line":             "1\nlevel=ERROR msg=forged",
		"terminal":             "\x1b[2J1",
		"NUL":                  "1\x00",
		"bad byte":             "1\xff",
		"bad byte's stand-in":  "1\ufffd",
		"overlong slash":       "\xc0\xaf",
		"surrogate":            "\xed\xa0\x80",
		"right to left":        "\u202e1",
		"zero width":           "1\u200b",
		"byte order mark":      "\ufeff1",
		"line separator":       "1\u2028",
		"one":                  "1",
		"padded":               "01",
		"fullwidth":            "１",
		"Latin":                "admin",
		"Cyrillic homoglyph":   "аdmin",
		"composed":             "é",
		"combining":            "e\u0301",
		"form of a long name":  strings.Repeat("1", 122) + "%sha256:" + strings.Repeat("0", 64),
		"4 KiB":                strings.Repeat("1", 4<<10),
		"4 KiB and a bit":      strings.Repeat("1", 4<<10) + "2",
		"mebibyte":             Mebibyte,
		"mebibyte with a twin": Mebibyte[1:] + "2",
	}
}

// Mebibyte is what some middleware refuses as too large.
var Mebibyte = strings.Repeat("1", 1<<20)

// Names checks what a middleware has made of values, under [Template].
type Names struct{ of map[string]string }

// Check fails the test unless name is what every middleware makes of value, is well-formed, and is
// no other value's.
func (n *Names) Check(tb testing.TB, value, name string) {
	tb.Helper()
	if n.of == nil {
		n.of = make(map[string]string)
	}
	if other, taken := n.of[name]; taken && other != value {
		tb.Errorf("%.40q and %.40q share the name %q", value, other, name)
	}
	n.of[name] = value
	if want, err := key.MustParse(Template).Name(value); err != nil || name != want {
		tb.Errorf("%.40q: the name is %q, others make %q, %v", value, name, want, err)
	}
	long := strings.Contains(name, "%sha256:")
	raw := func(r rune) bool { return r == '{' || r == '}' || unicode.IsSpace(r) || unicode.IsControl(r) }
	switch {
	case len(name) > 200 || !utf8.ValidString(name) || strings.ContainsFunc(name, raw):
		tb.Errorf("%.40q: no name is %q", value, name)
	case strings.Count(name, ":") != 2, !strings.HasPrefix(name, "order:"), !long && !strings.HasSuffix(name, ":x"):
		tb.Errorf("%.40q: a separator of its own in %q", value, name)
	case long != (len(value) > 150):
		tb.Errorf("%.40q: taken for a long one: %q", value, name)
	}
}
