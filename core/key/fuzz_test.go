package key

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

// hostile are values that have broken lock names, URLs and text protocols before.
func hostile() []string {
	return []string{
		"42", "1:2", "2:3", ":", "::", "%", "%3A", "%3a", "%25", "%253A", "%sha256:", "%%sha256:", "\xffsha256:", "{", "}", "{x}", "{}", " ",
		"a b", "\x00", "\x1f", "\x7f", "\u0085", "\u009f", "\u00a0", "\u2028", "\u3000", "\ufeff", "\u200b", "\ufffd",
		"\xff", "\x80", "\xc3", "\xed\xa0\x80", "\xc0\x80", "K", "k", "\u212a", "s", "\u017f", "é", "e\u0301",
		"-", "--", "%2D", "x", "x-", "-x", "/", "–", "\xe2\x80", "\r\n", "../..", strings.Repeat("x", 200),
		strings.Repeat(":", 70), strings.Repeat("é", 1000),
	}
}

// padding makes values long, so that short differences stand before and behind the cut of a long name. One
// pad in 256 means a mebibyte: as a seed it would slow the fuzzer down a hundredfold.
func padding(pad uint8) string {
	if pad == 255 {
		return strings.Repeat("\xff", 1<<20)
	}
	return strings.Repeat("p", int(pad))
}

func keyShapes() []string {
	return []string{
		"{a}:{b}", "{a}-{b}", "order:{a}/{b}", "{a}x-x{b}x", "{a}–{b}", "{a}-:{b}", "{a}::{b}", "{a}.-:–{b}!",
		"{query:a}:{header:B}:", "{a}%{b}", "{a}{b}", "{a}€é:{b}", "{a}–{b}€{a}", "order:{a}", "-{a}:{b}/", "{a}-{b}/{a}",
	}
}

// hasForm says that spellings of a value make one name, or none.
func hasForm(k *Key) bool {
	return slices.ContainsFunc(k.Sources(), func(s Source) bool { return s.Form == Int || s.Form == UUID })
}

// A name is what the rules say, and two lists of values make one name only if they are the same.
func FuzzKeyNeverConfusesValues(f *testing.F) {
	values := hostile()
	f.Add("{a}-{b}", "-", "1", "", "-1", uint8(255))
	for i, tmpl := range keyShapes() {
		f.Add(tmpl, "1:2", "3", "1", "2:3", uint8(0))
		f.Add(tmpl, "1-2", "3", "1", "2-3", uint8(200))
		for j, v := range values {
			other := values[(i+j+1)%len(values)]
			f.Add(tmpl, v, other, v+other[:1], other[1:], uint8(j))
			f.Add(tmpl, v, v, other, other, uint8(130+i))
			f.Add(tmpl, "1", v+v, "1"+v, v, uint8(0))
		}
	}
	for _, v := range values { // what is a template, and what is none
		for _, tmpl := range []string{v, "order:{" + v + "}", "{a}" + v + "{b}", "{a|text}:{b|" + v + "}"} {
			f.Add(tmpl, "1", "2", "1", "3", uint8(0))
		}
	}
	f.Fuzz(func(t *testing.T, tmpl, a1, b1, a2, b2 string, pad uint8) {
		p := padding(pad)
		shapes := []string{tmpl}
		if pad < 255 {
			shapes = append(shapes, keyShapes()...)
		}
		for _, shape := range shapes {
			k, err := Parse(shape)
			if err != nil && !errors.Is(err, invalid.Err) {
				t.Fatalf("%q: %v", shape, err)
			}
			if err != nil || hasForm(k) {
				continue
			}
			clear(k.Sources()) // which is a copy
			var names [2]string
			var values [2][]string
			for i, pair := range [][2]string{{p + a1, b1}, {p + a2, b2}} {
				for n := range k.parts {
					values[i] = append(values[i], pair[n%2])
				}
				if !slices.Contains(values[i], "") {
					names[i] = mustName(t, k, values[i]...)
				} else if name, err := k.Name(values[i]...); !errors.Is(err, ErrMissing) {
					t.Fatalf("%q with %q: %q, %v", shape, values[i], name, err)
				}
			}
			if (names[0] == names[1]) != slices.Equal(values[0], values[1]) && names[0]+names[1] != "" {
				t.Fatalf("%q: %q and %q make %q and %q", shape, values[0], values[1], names[0], names[1])
			}
		}
	})
}
