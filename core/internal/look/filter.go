package look

import "strings"

// Filter is a choice of names. The zero value has all.
type Filter []string

// Keep says whether one of the patterns matches the name: as a whole if it has a star, for any text, or a
// question mark, for one character; else as its beginning.
func (f Filter) Keep(name string) bool {
	for _, pattern := range f {
		if !strings.ContainsAny(pattern, "*?") {
			pattern += "*"
		}
		if matches([]rune(pattern), []rune(name)) {
			return true
		}
	}
	return len(f) == 0
}

// Prefix is what all names begin with that the filter keeps.
func (f Filter) Prefix() (common string) {
	for i, pattern := range f {
		literal, _, _ := strings.Cut(strings.ReplaceAll(pattern, "?", "*"), "*")
		if i == 0 {
			common = literal
		}
		for !strings.HasPrefix(literal, common) {
			common = common[:len(common)-1]
		}
	}
	return strings.ToValidUTF8(common, "")
}

// matches is linear for one star, and never worse than the product of the lengths.
func matches(pattern, name []rune) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0: // the star takes one more
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
