package key

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// mustName makes a name, and fails the test unless it is what the rules say, written independently of the code: whole, or a readable
// head and the hash of the whole.
func mustName(t *testing.T, k *Key, values ...string) string {
	t.Helper()
	name, err := k.Name(values...)
	if err != nil {
		t.Fatalf("%q with %.100q: %v", k, values, err)
	}
	if err := CheckName(name); err != nil {
		t.Fatalf("%q with %.100q: %v", k, values, err)
	}
	whole := expanded(k.String(), values)
	if len(whole) <= 200 {
		if name != whole || strings.Contains(name, "%sha256:") {
			t.Fatalf("%q with %.100q: %q, want %q", k, values, name, whole)
		}
		return name
	}
	head, tail, _ := strings.Cut(name, "%sha256:")
	if sum := sha256.Sum256([]byte(whole)); tail != hex.EncodeToString(sum[:]) {
		t.Fatalf("%q with %.100q: %q does not end in the SHA-256 of %.300q", k, values, name, whole)
	}
	if !strings.HasPrefix(whole, head) || len(head) < 120 || len(name) > 200 {
		t.Fatalf("%q with %.100q: the head %q is not the readable beginning", k, values, head)
	}
	if !utf8.ValidString(head) || strings.LastIndexByte(head, '%') > len(head)-3 {
		t.Fatalf("%q with %.100q: the head %q ends inside a character or an escape", k, values, head)
	}
	return name
}

var braces = regexp.MustCompile(`\{[^{}]*\}`)

// expanded is what a template without forms makes of values, whatever the length: percent-encoding of what DESIGN calls ": { } %",
// spaces and controls, and of the separators between two sources.
func expanded(tmpl string, values []string) string {
	literals := braces.Split(tmpl, -1)
	special := ":{}%"
	for _, between := range literals[1:max(1, len(literals)-1)] {
		if strings.Contains(between, ":") {
			continue
		}
		mark := between[strings.IndexFunc(between, func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }):]
		_, size := utf8.DecodeRuneInString(mark)
		special += mark[:size]
	}
	name := literals[0]
	for i, value := range values {
		name += encoded(value, special) + literals[i+1]
	}
	return name
}

func encoded(value, special string) string {
	var b strings.Builder
	for value != "" {
		r, size := utf8.DecodeRuneInString(value)
		if r == utf8.RuneError && size == 1 || strings.ContainsRune(special, r) || unicode.IsSpace(r) || unicode.IsControl(r) {
			b.WriteString("%" + strings.ReplaceAll(fmt.Sprintf("% X", value[:size]), " ", "%"))
		} else {
			b.WriteString(value[:size])
		}
		value = value[size:]
	}
	return b.String()
}

func TestEveryCharacterIsEncodedOrKeptByTheRule(t *testing.T) {
	t.Parallel()
	k := MustParse("k:{a}")
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if 0xd800 <= r && r < 0xe000 {
			continue
		}
		want := encoded(string(r), ":{}%")
		if got, err := k.Name("<" + string(r) + ">"); got != "k:<"+want+">" || CheckName(got) != nil {
			t.Fatalf("%U became %q, %v, want %q", r, got, err, want)
		}
		if allowed := want == string(r) || r == ':' || r == '%'; allowed != (CheckName(string(r)) == nil) {
			t.Fatalf("%U in a name: %v, want allowed: %t", r, CheckName(string(r)), allowed)
		}
	}
}

func TestNamesUpTo200BytesAreKeptAndLongerOnesHashed(t *testing.T) {
	t.Parallel()
	k := MustParse("k:{a}")
	for _, unit := range []string{"x", "é", "日", "😀", ":", "\xff", "\u00a0", "a:", "é:", "日\x00"} {
		for shift := range 6 {
			for n := 1; n <= 210; n++ {
				mustName(t, k, strings.Repeat("x", shift)+strings.Repeat(unit, n))
			}
		}
	}
}

// Memory and allocations are counted without other tests running: no t.Parallel here and below.
func TestAHugeValueIsHashedWithoutACopyOfIt(t *testing.T) { //nolint:paralleltest // it counts allocations, which other tests have too
	k := MustParse("order:{a}")
	for _, unit := range []string{"x", ":", "é", "\xff", "\u00a0"} {
		value := strings.Repeat(unit, 1<<20)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		name, err := k.Name(value)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<10 || err != nil {
			t.Errorf("%q × 1 Mi: %d bytes allocated for %q, %v", unit, used, name, err)
		}
	}
}

func TestOnlyTheResultIsAllocated(t *testing.T) { //nolint:paralleltest // it counts allocations, which other tests have too
	k := MustParse("order:{a}")
	many := []byte(`{` + strings.Repeat(`"\u0041\u0042":"x",`, 1000) + `"order":{"id":"\u00e9\n"}}`)
	for what, row := range map[string]struct {
		most float64
		do   func() error
	}{
		"Expand":    {1, func() error { _, err := k.Expand(func(string) (string, error) { return "a:42é", nil }); return err }},
		"Name":      {1, func() error { _, err := k.Name("a:42é"); return err }},
		"CheckName": {0, func() error { return CheckName("order:größe:日本:42") }},
		"JSONValue": {4, func() error { _, err := JSONValue(many, "order.id"); return err }}, // more than 1 under the race detector, where json.Valid's pool forgets
	} {
		n := testing.AllocsPerRun(100, func() {
			if err := row.do(); err != nil {
				t.Error(err)
			}
		})
		if n > row.most {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
}
