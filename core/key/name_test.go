package key

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

func TestCheckNameAcceptsNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"x", "order:42", "größe/42", "日本", "a\u200bb", "\ufffd", "100%", "order:%sha256:00", "e\u0301",
		"[a]!\"#$&'()*+,-./;<=>?@\\^_`|~", strings.Repeat("x", 200), strings.Repeat("é", 100),
	} {
		if err := CheckName(name); err != nil {
			t.Errorf("CheckName(%q): %v", name, err)
		}
	}
}

func TestCheckNameRefusesWhatIsNoName(t *testing.T) {
	t.Parallel()
	for why, names := range map[string][]string{
		"empty": {""}, "201 bytes": {strings.Repeat("x", 201)}, "202 bytes": {strings.Repeat("é", 101)},
		"'{' at byte 1": {"a{b"}, "'}' at byte 1": {"a}b"}, "' ' at byte 1": {"a b"}, `'\t' at byte 2`: {"é\tb"}, `'\n' at byte 1`: {"a\nb"},
		`'\x00' at byte 1`: {"a\x00"}, `'\x1f' at byte 0`: {"\x1f"}, `'\x7f' at byte 1`: {"a\x7f"}, `'\u0080' at byte 1`: {"a\u0080"},
		`'\u0085' at byte 1`: {"a\u0085"}, `'\u009f' at byte 1`: {"a\u009f"}, `'\u00a0' at byte 1`: {"a\u00a0"}, `'\u1680' at byte 1`: {"a\u1680"},
		`'\u2003' at byte 1`: {"a\u2003"}, `'\u2028' at byte 1`: {"a\u2028"}, `'\u3000' at byte 1`: {"a\u3000"},
		"not valid UTF-8 at byte 1": {"a\xff", "a\xc3", "a\xed\xa0\x80", "a\xc0\xaf"},
	} {
		for _, name := range names {
			if err := CheckName(name); !errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), why) {
				t.Errorf("CheckName(%q): %v, want invalid.Err with %q", name, err, why)
			}
		}
	}
}

func TestCheckNameErrorsAreShort(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		strings.Repeat("x", 1<<20), strings.Repeat("\x00", 1<<20), strings.Repeat("\x80", 1<<20),
		strings.Repeat("é", 60) + " ", strings.Repeat("x", 150) + "\xff",
	} {
		err := CheckName(name)
		if err == nil || len(err.Error()) > 300 || strings.Count(err.Error(), "x") > 45+len("\\x00")*10 {
			t.Errorf("an error of %d bytes: %.400v", len(err.Error()), err)
		}
	}
}

func TestQuotedHeadIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ s, want string }{
		{"abcdef", `"abcdef"`},
		{"abcdefg", `"abcdef"…`},
		{"abcdeé", `"abcde"…`},
		{"abc日本", `"abc日"…`},
		{"abcd日本", `"abcd"…`},
		{"abc😀é", `"abc"…`},
	} {
		if got := quoteHead(tt.s, 6); got != tt.want {
			t.Errorf("quoteHead(%q) = %s, want %s", tt.s, got, tt.want)
		}
	}
}

// Allocations are counted without other tests running: no t.Parallel.
func TestCheckNameDoesNotAllocate(t *testing.T) { //nolint:paralleltest // it counts allocations, which other tests have too
	name := "order:größe:日本:42"
	if n := testing.AllocsPerRun(100, func() { _ = CheckName(name) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
