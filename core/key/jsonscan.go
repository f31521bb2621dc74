package key

import (
	"encoding/hex"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonCursor walks through JSON that [json.Valid] has accepted. So it meets no errors. It needs no
// recursion either: to find the end of a value it counts brackets.
type jsonCursor struct {
	text []byte
	at   int
}

// member returns the next member of an object: the inside of its name and its raw value. It steps
// over the comma after the value. ok is false at the end of the object.
func (c *jsonCursor) member() (name, value []byte, ok bool) {
	c.skip(' ')
	if c.text[c.at] == '}' {
		return nil, nil, false
	}
	name = c.value()
	c.skip(':')
	value = c.value()
	c.skip(',')
	return name[1 : len(name)-1], value, true
}

// skip steps over white space and one kind of punctuation.
func (c *jsonCursor) skip(punct byte) {
	for {
		switch c.text[c.at] {
		case ' ', '\t', '\r', '\n', punct:
			c.at++
		default:
			return
		}
	}
}

// value steps over one value and returns its raw text. There is always something after the value,
// because it is part of an object.
func (c *jsonCursor) value() []byte {
	begin, depth := c.at, 0
	for {
		switch c.text[c.at] {
		case '"':
			c.skipString()
		case '{', '[':
			depth++
			c.at++
		case '}', ']':
			depth--
			c.at++
		default:
			c.at++
		}
		if depth == 0 && c.behindValue() {
			return c.text[begin:c.at]
		}
	}
}

func (c *jsonCursor) skipString() {
	c.at++
	for c.text[c.at] != '"' {
		if c.text[c.at] == '\\' {
			c.at++
		}
		c.at++
	}
	c.at++
}

func (c *jsonCursor) behindValue() bool {
	switch c.text[c.at] {
	case ' ', '\t', '\r', '\n', ',', ':', '}', ']':
		return true
	}
	return false
}

// jsonNameIs compares the inside of a JSON string with name. same says that they are equal. folded
// says that they are equal if case is ignored, which is how [encoding/json] finds the field for a
// member.
func jsonNameIs(raw []byte, name string) (same, folded bool) {
	same = true
	for len(raw) > 0 && name != "" {
		r, size, _ := jsonRune(raw)
		want, wantSize := utf8.DecodeRuneInString(name)
		if r != want {
			same = false
			if !equalFold(r, want) {
				return false, false
			}
		}
		raw, name = raw[size:], name[wantSize:]
	}
	if len(raw) > 0 || name != "" {
		return false, false
	}
	return same, true
}

// equalFold is [strings.EqualFold] for one character: K, k and the Kelvin sign are equal.
func equalFold(a, b rune) bool {
	for r := unicode.SimpleFold(a); r != a; r = unicode.SimpleFold(r) {
		if r == b {
			return true
		}
	}
	return a == b
}

// jsonRune decodes the first character of the inside of a JSON string. For half a surrogate pair,
// ok is false and r is U+FFFD, as in encoding/json.
func jsonRune(raw []byte) (r rune, size int, ok bool) {
	if raw[0] != '\\' {
		r, size = utf8.DecodeRune(raw)
		return r, size, true
	}
	if raw[1] != 'u' {
		return jsonShortEscape(raw[1]), 2, true
	}
	r = jsonHex(raw)
	if !utf16.IsSurrogate(r) {
		return r, 6, true
	}
	if raw = raw[6:]; len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
		if pair := utf16.DecodeRune(r, jsonHex(raw)); pair != utf8.RuneError {
			return pair, 12, true
		}
	}
	return utf8.RuneError, 6, false
}

func jsonShortEscape(c byte) rune {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return rune(c) // a quote, a slash or a backslash
}

// jsonHex reads the four digits of an escape such as \u00e9.
func jsonHex(escape []byte) rune {
	var b [2]byte
	_, _ = hex.Decode(b[:], escape[2:6]) // json.Valid has seen the digits
	return rune(b[0])<<8 | rune(b[1])
}
