package key

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"
	"unicode/utf8"
)

// valueEncoder percent-encodes what must not stand in a value: everything that a name must not
// contain, ':' and '%', and the separators of one template.
type valueEncoder struct {
	ascii [utf8.RuneSelf]bool // characters to escape
	wide  string              // separators beyond ASCII
}

func newValueEncoder() valueEncoder {
	var e valueEncoder
	for c := range e.ascii {
		e.ascii[c] = !nameRune(rune(c))
	}
	e.add(':')
	e.add('%')
	return e
}

func (e *valueEncoder) add(sep rune) {
	if sep < utf8.RuneSelf {
		e.ascii[sep] = true
		return
	}
	e.wide += string(sep)
}

func (e *valueEncoder) encode(x *expansion, v string) {
	clean := 0
	for i := 0; i < len(v); {
		if c := v[i]; c < utf8.RuneSelf && !e.ascii[c] {
			i++
			continue
		}
		size, escape := e.special(v[i:])
		if escape {
			x.write(v[clean:i])
			x.escape(v[i : i+size])
			clean = i + size
		}
		i += size
	}
	x.write(v[clean:])
}

// special looks at the first character of s, which is beyond ASCII or has to be escaped. A byte
// that is not UTF-8 is escaped alone. So it stays different from U+FFFD, which decoders make of it.
func (e *valueEncoder) special(s string) (size int, escape bool) {
	r, size := utf8.DecodeRuneInString(s)
	if size == 1 {
		return 1, true
	}
	return size, !nameRune(r) || strings.ContainsRune(e.wide, r)
}

// longMark stands between the head of a long name and its hash. In an expanded template every '%'
// is followed by two hexadecimal digits, and "%s" is not. So no value, whoever chose it, can make a
// name of 200 bytes or less that looks like a long one.
const longMark = "%sha256:"

const maxLongHead = MaxName - len(longMark) - 2*sha256.Size

// expansion is a name that is being written. It keeps only as many bytes as a name may have, and
// hashes the rest as it comes. So a value of many megabytes costs time, not memory.
type expansion struct {
	head [MaxName]byte
	n    int
	rest *bufio.Writer // into sum; nil while everything fits into head
	sum  hash.Hash
}

func (x *expansion) write(s string) {
	fits := copy(x.head[x.n:], s)
	x.n += fits
	if fits < len(s) {
		_, _ = x.beyond().WriteString(s[fits:]) // a hash never fails
	}
}

func (x *expansion) writeByte(c byte) {
	if x.n < len(x.head) {
		x.head[x.n] = c
		x.n++
		return
	}
	_ = x.beyond().WriteByte(c) // a hash never fails
}

// beyond returns the writer for everything that head has no room for.
func (x *expansion) beyond() *bufio.Writer {
	if x.rest == nil {
		x.sum = sha256.New()
		x.rest = bufio.NewWriterSize(x.sum, 1024)
		_, _ = x.rest.WriteString(string(x.head[:])) // a copy, or every expansion would be on the heap
	}
	return x.rest
}

func (x *expansion) escape(s string) {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		x.writeByte('%')
		x.writeByte(digits[s[i]>>4])
		x.writeByte(digits[s[i]&0xf])
	}
}

func (x *expansion) name() string {
	if x.rest == nil {
		return string(x.head[:x.n])
	}
	_ = x.rest.Flush() // a hash never fails
	name := make([]byte, 0, MaxName)
	name = append(name, x.head[:x.headEnd()]...)
	name = append(name, longMark...)
	return string(hex.AppendEncode(name, x.sum.Sum(nil)))
}

// headEnd is where the head of a long name ends. It cuts no character and no escape in two.
func (x *expansion) headEnd() int {
	end := maxLongHead
	for !utf8.RuneStart(x.head[end]) {
		end--
	}
	for i := end - 2; i < end; i++ {
		if x.head[i] == '%' {
			return i
		}
	}
	return end
}
