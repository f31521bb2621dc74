package key

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

func compile(tmpl string) (*Key, error) {
	k := &Key{tmpl: tmpl, enc: newValueEncoder()}
	for _, step := range []func() error{k.parse, k.separate, k.checkRoom} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("key %s: %w", quoteHead(tmpl, MaxName), err)
		}
	}
	return k, nil
}

func (k *Key) parse() error {
	if k.tmpl == "" {
		return errors.New("empty template")
	}
	if !utf8.ValidString(k.tmpl) {
		return errors.New("not valid UTF-8")
	}
	head, rest, err := cutLiteral(k.tmpl)
	k.head = head
	for err == nil && rest != "" {
		var p part
		p, rest, err = cutPart(rest)
		k.parts = append(k.parts, p)
	}
	return err
}

// cutPart cuts "{source}literal" off the front of s, which begins with an opening brace.
func cutPart(s string) (p part, rest string, err error) {
	source, after, ok := strings.Cut(s[1:], "}")
	if !ok || strings.Contains(source, "{") {
		return p, "", fmt.Errorf("brace without its partner at %s", quoteHead(s, 40))
	}
	if p.source, err = parseSource(source); err != nil {
		return p, "", fmt.Errorf("source %s: %w", quoteHead(source, 40), err)
	}
	p.literal, rest, err = cutLiteral(after)
	return p, rest, err
}

func parseSource(written string) (s Source, err error) {
	name, form, ok := strings.Cut(written, "|")
	if ok {
		if s.Form, err = parseForm(form); err != nil {
			return s, err
		}
	}
	s.Name = name
	return s, checkSource(name)
}

// cutLiteral cuts everything before the first opening brace off s.
//
// A literal has no '%', so in an expanded name every '%' begins an escape: see longMark.
func cutLiteral(s string) (literal, rest string, err error) {
	end := strings.IndexByte(s, '{')
	if end < 0 {
		end = len(s)
	}
	literal = s[:end]
	for _, r := range literal {
		switch {
		case r == '}':
			return "", "", fmt.Errorf("brace without its partner at %s", quoteHead(literal, 40))
		case r == '%' || !nameRune(r):
			return "", "", fmt.Errorf("%q is not allowed in literal text", r)
		}
	}
	return literal, s[end:], nil
}

func checkSource(source string) error {
	if source == "" {
		return errors.New("empty")
	}
	kind, path, ok := strings.Cut(source, ":")
	if !ok {
		return checkPath(source)
	}
	notLower := func(r rune) bool { return r < 'a' || r > 'z' }
	if kind == "" || strings.ContainsFunc(kind, notLower) {
		return errors.New("the kind before ':' is lower-case ASCII letters")
	}
	return checkPath(path)
}

// checkPath allows less than the places that values come from. '*' is the catch-all of Echo and
// chi; "$@[]" are in query and JSON names. More can be allowed later, but nothing that is allowed
// can be taken back.
func checkPath(path string) error {
	for part := range strings.SplitSeq(path, ".") {
		if part == "" {
			return errors.New("empty name")
		}
	}
	for _, r := range path {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-*$@[]", r) {
			return fmt.Errorf("%q is not allowed in a name", r)
		}
	}
	return nil
}

// separate makes the key injective: two different lists of values never give the same expansion.
//
// The proof: let s be the separator chosen from the literal that follows value i. The encoded value
// contains no s, because each s is escaped, and escapes consist of '%', digits and 'A' to 'F', none
// of which is a separator. Assume that everything before value i is known. Then the first s after
// that is the literal's own first s. The literal's text before s is fixed, so it shows where value
// i ends. By induction all values except the last one are known. The last one is what remains
// before the fixed end. Decoding is unique because '%' itself is escaped.
func (k *Key) separate() error {
	for i := range len(k.parts) - 1 {
		p := k.parts[i]
		sep, ok := separator(p.literal)
		if !ok {
			return fmt.Errorf("nothing tells where {%s} ends and {%s} begins: put ':' between them",
				p.source.Name, k.parts[i+1].source.Name)
		}
		k.enc.add(sep)
	}
	return nil
}

// separator prefers ':', which is escaped in every value of every template. With another separator,
// "2024-05" looks different in one template than in the next.
func separator(literal string) (rune, bool) {
	if strings.Contains(literal, ":") {
		return ':', true
	}
	for _, r := range literal {
		if unicode.IsPunct(r) || unicode.IsSymbol(r) {
			return r, true
		}
	}
	return 0, false
}

// checkRoom refuses a template whose names would all be hashed. Each source gives at least one
// byte.
func (k *Key) checkRoom() error {
	least := len(k.head)
	for _, p := range k.parts {
		least += 1 + len(p.literal)
	}
	if least > MaxName {
		return fmt.Errorf("every name would have %d bytes or more, over the limit of %d", least, MaxName)
	}
	return nil
}
