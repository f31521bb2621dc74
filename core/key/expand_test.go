package key

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func mustName(t *testing.T, tmpl string, values ...string) string {
	t.Helper()
	name, err := MustParse(tmpl).Name(values...)
	if err != nil {
		t.Fatalf("%q with %.100q: %v", tmpl, values, err)
	}
	if err := CheckName(name); err != nil {
		t.Errorf("%q with %.100q: %v", tmpl, values, err)
	}
	return name
}

// Written independently of the code: percent-encoding of what DESIGN calls ": { } %", spaces and
// controls.
func TestEveryCharacterIsEncodedOrKeptByTheRule(t *testing.T) {
	t.Parallel()
	k := MustParse("k:{a}")
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if 0xd800 <= r && r < 0xe000 {
			continue
		}
		want := string(r)
		if strings.ContainsRune(":{}%", r) || unicode.IsSpace(r) || unicode.IsControl(r) {
			want = "%" + strings.ReplaceAll(fmt.Sprintf("% X", string(r)), " ", "%")
		}
		if got, err := k.Name("<" + string(r) + ">"); got != "k:<"+want+">" || CheckName(got) != nil {
			t.Fatalf("%U became %q, %v, want %q", r, got, err, want)
		}
	}
}

func TestBytesThatAreNotUTF8AreEncoded(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"\xff": "%FF", "a\x80\x81b": "a%80%81b", "\xc3": "%C3", "\xc3(": "%C3(", "\xe6\x97": "%E6%97",
		"\xed\xa0\x80":     "%ED%A0%80", // a lone surrogate
		"\xc0\xaf":         "%C0%AF",    // overlong '/'
		"\xf4\x90\x80\x80": "%F4%90%80%80",
		"\ufffd":           "\ufffd", // what decoders make of all of these is another name
	} {
		if got := mustName(t, "k:{a}", value); got != "k:"+want {
			t.Errorf("%q became %q, want %q", value, got, want)
		}
	}
}

func TestSeparatorsAreEncodedInEveryValueOfTheirTemplate(t *testing.T) {
	t.Parallel()
	for tmpl, want := range map[string]string{ // with "1-2", "3/4" and "–"
		"{a}:{b}:{c}":    "1-2:3/4:–",
		"{a}-{b}:{c}":    "1%2D2-3/4:–",
		"{a}/{b}:{c}":    "1-2/3%2F4:–",
		"{a}–{b}–{c}":    "1-2–3/4–%E2%80%93", // a separator beyond ASCII
		"{a}-{b}/{c}":    "1%2D2-3%2F4/–",     // two separators
		"{a}xx-/{b}:{c}": "1%2D2xx-/3/4:–",    // the first one only
		"-{a}:{b}:{c}/":  "-1-2:3/4:–/",       // not between sources
		"{a}-:{b}:{c}":   "1-2-:3/4:–",        // ':' is encoded anyway
	} {
		if got := mustName(t, tmpl, "1-2", "3/4", "–"); got != want {
			t.Errorf("%q gives %q, want %q", tmpl, got, want)
		}
	}
}

func TestValuesThatDifferNeverMakeOneName(t *testing.T) {
	t.Parallel()
	pieces := []string{"", "1", "%", "%3A", ":", "-", "%2D", "x", "_", "{", " ", "\xff", "–", "\xe2"}
	values := make([]string, 0, len(pieces)*len(pieces))
	for _, a := range pieces {
		for _, b := range pieces {
			values = append(values, a+b)
		}
	}
	for _, tmpl := range []string{"{a}:{b}", "{a}-{b}", "k{a}x-x{b}x", "{a}–{b}", "{a}-:-{b}", "{a}x_-{b}"} {
		k := MustParse(tmpl)
		seen := map[string][2]string{}
		for _, a := range values[1:] {
			for _, b := range values[1:] {
				name, err := k.Name(a, b)
				if err != nil {
					t.Fatal(err)
				}
				if before, ok := seen[name]; ok && before != [2]string{a, b} {
					t.Fatalf("%q: %q and %q, %q both make %q", tmpl, before, a, b, name)
				}
				seen[name] = [2]string{a, b}
			}
		}
	}
}

func TestNamesUpTo200BytesAreKeptAndLongerOnesHashed(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"x", "é", "日", "😀", ":", "\xff", "\u00a0"} {
		for n := 1; n <= 210; n++ {
			value := strings.Repeat(unit, n)
			full := "k:" + encoded(value)
			name := mustName(t, "k:{a}", value)
			if len(full) <= 200 {
				if name != full {
					t.Fatalf("%d bytes: %q, want it as it is", len(full), name)
				}
				continue
			}
			sum := sha256.Sum256([]byte(full))
			head, tail, _ := strings.Cut(name, "%sha256:")
			if tail != hex.EncodeToString(sum[:]) {
				t.Fatalf("%d bytes: %q does not end in the SHA-256 of %q", len(full), name, full)
			}
			if !strings.HasPrefix(full, head) || len(head) < 120 || len(name) > 200 {
				t.Fatalf("%d bytes: the head %q is not the readable beginning", len(full), head)
			}
		}
	}
}

// encoded says again what an encoded value is, for templates whose separator is ':'.
func encoded(value string) string {
	var b strings.Builder
	for value != "" {
		r, size := utf8.DecodeRuneInString(value)
		bad := r == utf8.RuneError && size == 1
		if bad || strings.ContainsRune(":{}%", r) || unicode.IsSpace(r) || unicode.IsControl(r) {
			fmt.Fprintf(&b, "%%%s", strings.ToUpper(strings.Join(hexBytes(value[:size]), "%")))
		} else {
			b.WriteString(value[:size])
		}
		value = value[size:]
	}
	return b.String()
}

func hexBytes(s string) (out []string) {
	for i := range len(s) {
		out = append(out, hex.EncodeToString([]byte{s[i]}))
	}
	return out
}

func TestLongNameHeadIsCutBetweenCharactersAndEscapes(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"é", "日", "😀", ":", "\u00a0", "\xff", "a:", "é:", "日\x00"} {
		for shift := range 6 {
			value := strings.Repeat("x", shift) + strings.Repeat(unit, 200)
			head, _, _ := strings.Cut(mustName(t, "k:{a}", value), "%sha256:")
			if !utf8.ValidString(head) {
				t.Errorf("%q shifted by %d: the head %q ends inside a character", unit, shift, head)
			}
			if i := strings.LastIndexByte(head, '%'); i >= 0 && i > len(head)-3 {
				t.Errorf("%q shifted by %d: the head %q ends inside an escape", unit, shift, head)
			}
		}
	}
}

func TestNamesThatDifferLateOrByTheirColonsDiffer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	for _, names := range [][2]string{
		{mustName(t, "k:{a}", long+"1"), mustName(t, "k:{a}", long+"2")},
		{mustName(t, "{a}:{b}", long+":", "1"), mustName(t, "{a}:{b}", long, ":1")},
		{mustName(t, "order:{id}", "acme:42"), mustName(t, "order:{tenant}:{id}", "acme", "42")},
	} {
		if names[0] == names[1] {
			t.Errorf("both make %q", names[0])
		}
	}
}

func TestARequestCannotForgeTheFormOfALongName(t *testing.T) {
	t.Parallel()
	long := mustName(t, "{a}", strings.Repeat("x", 300))
	for _, value := range []string{long, long[1:], longMark, "%sha256:", "%%sha256:", "%25sha256:", "\xffsha256:"} {
		name := mustName(t, "{a}", value)
		if strings.Count(name, longMark) > 1 || strings.Contains(name, longMark) && len(value) < 100 {
			t.Errorf("the value %q made %q", value, name)
		}
		if name == long {
			t.Errorf("the value %q makes the name of another", value)
		}
	}
	if _, err := Parse("{a}%sha256:x"); err == nil {
		t.Error("a literal may hold the mark")
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

func TestAShortNameIsOneAllocation(t *testing.T) { //nolint:paralleltest // it counts allocations, which other tests have too
	k := MustParse("order:{a}")
	value := func(string) (string, error) { return "a:42é", nil }
	if n := testing.AllocsPerRun(100, func() { _, _ = k.Expand(value) }); n != 1 {
		t.Errorf("Expand: %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = k.Name("a:42é") }); n != 1 {
		t.Errorf("Name: %v allocations", n)
	}
}
