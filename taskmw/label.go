package taskmw

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText is the longest type or ID in a label, whose 256 bytes have to do for both.
const maxText = 125

// hashMark stands between the head of a long text and its hash. Elsewhere two hexadecimal
// digits follow a '%'.
const hashMark = "%sha256-"

// label names a task to those who find its name held: task:<type>:<id>. No two tasks have
// the same one, and the ID is what follows the last colon.
func label(taskType, id string) string { return "task:" + text(taskType, "") + ":" + text(id, ":") }

// text makes of any s what core takes in labels, scopes and templates. What is unusual, or
// special, is percent-encoded; what is long keeps a head and ends in its SHA-256. Different
// strings stay different.
func text(s, special string) string {
	escape := func(r rune) bool {
		return r == '%' || r == utf8.RuneError || unicode.IsControl(r) || strings.ContainsRune(special, r)
	}
	if len(s) <= maxText && !strings.ContainsFunc(s, escape) {
		return s
	}
	var b strings.Builder
	head := 0 // where to cut, between two characters
	for rest := s; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if escape(r) {
			for _, c := range []byte(rest[:size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteString(rest[:size])
		}
		rest = rest[size:]
		if b.Len() <= maxText-len(hashMark)-2*sha256.Size {
			head = b.Len()
		}
	}
	if b.Len() <= maxText {
		return b.String()
	}
	sum := sha256.Sum256([]byte(s))
	return b.String()[:head] + hashMark + hex.EncodeToString(sum[:])
}
