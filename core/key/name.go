package key

import (
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

// MaxName is the length of the longest name, in bytes.
const MaxName = 200

// CheckName says whether name may be locked: 1 to 200 bytes of UTF-8 without braces, spaces and
// control characters. With braces a name could choose its Redis Cluster slot; the others break text
// protocols.
func CheckName(name string) error {
	if name == "" {
		return invalid.Errorf("name: empty")
	}
	if len(name) > MaxName {
		return invalid.Errorf("name %s: %d bytes, over the limit of %d", quoteHead(name, 40), len(name), MaxName)
	}
	for i := 0; i < len(name); {
		if c := name[i]; c < utf8.RuneSelf && nameASCII(rune(c)) {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && size == 1 {
			return invalid.Errorf("name %s: not valid UTF-8 at byte %d", quoteHead(name, 40), i)
		}
		if !nameRune(r) {
			return invalid.Errorf("name %s: %q at byte %d; braces, spaces and control characters are not allowed",
				quoteHead(name, 40), r, i)
		}
		i += size
	}
	return nil
}

// nameRune says whether r may stand in a name.
func nameRune(r rune) bool {
	if r < utf8.RuneSelf {
		return nameASCII(r)
	}
	return !unicode.IsSpace(r) && !unicode.IsControl(r)
}

func nameASCII(r rune) bool {
	return r > ' ' && r != '{' && r != '}' && r != 0x7f
}

// quoteHead quotes at most limit bytes of s. Names and templates may come from outside, and errors
// are logged.
func quoteHead(s string, limit int) string {
	if len(s) <= limit {
		return strconv.Quote(s)
	}
	for back := 0; back < utf8.UTFMax-1 && !utf8.RuneStart(s[limit]); back++ {
		limit--
	}
	return strconv.Quote(s[:limit]) + "…"
}
