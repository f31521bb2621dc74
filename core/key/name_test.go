package key

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

// Which characters may stand in a name is TestEveryCharacterIsEncodedOrKeptByTheRule's matter.
func TestCheckNameSaysWhatIsNoName(t *testing.T) {
	t.Parallel()
	for why, names := range map[string][]string{
		"":      {"x", "order:42", "größe/42", "\ufffd", "100%", strings.Repeat("x", 200), strings.Repeat("é", 100)},
		"empty": {""}, "201 bytes": {strings.Repeat("x", 201)}, "202 bytes": {strings.Repeat("é", 101)},
		"'{' at byte 1": {"a{b"}, `'\t' at byte 2`: {"é\tb"}, `'\x1f' at byte 0`: {"\x1f"}, `'\u3000' at byte 1`: {"a\u3000"},
		"not valid UTF-8 at byte 1": {"a\xff", "a\xc3", "a\xed\xa0\x80", "a\xc0\xaf"},
	} {
		for _, name := range names {
			err := CheckName(name)
			if (err == nil) != (why == "") || err != nil && (!errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), why)) {
				t.Errorf("CheckName(%q): %v, want %q", name, err, why)
			}
		}
	}
}

func TestErrorsAreShortWhateverIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("x", 1<<20) + "}", strings.Repeat("\x00", 1<<20), strings.Repeat("\x80", 1<<20), strings.Repeat("{", 1<<20),
		"{" + strings.Repeat("\x00", 1<<20) + "}", strings.Repeat("{a}", 1<<18), strings.Repeat("é", 60) + " ", strings.Repeat("x", 150) + "\xff",
	} {
		if err := CheckName(text); err == nil || len(err.Error()) > 300 {
			t.Errorf("of a name: %d bytes, %.400v", len(err.Error()), err)
		}
		if _, err := Parse(text); err == nil || len(err.Error()) > 2000 {
			t.Errorf("of a template: %d bytes, %.400v", len(err.Error()), err)
		}
	}
}
