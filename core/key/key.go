// Package key makes lock names from values, so that different values never make the same name. docs/keys.md
// has the grammar, and what is promised.
package key

import (
	"fmt"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

// Key makes lock names from values: it is a compiled template such as "order:{id}" or
// "tenant:{header:X-Tenant}:{order.id}". Make one with [Parse], once, when the program starts; a Key
// never changes and is safe for concurrent use. The zero Key makes no usable name.
type Key struct {
	tmpl  string
	head  string // what stands before the first source
	parts []part
	enc   valueEncoder
}

// part is one source and the literal that follows it.
type part struct {
	source  string
	literal string
}

// Parse compiles a template: literal text with any number of {sources}, at most 200 bytes of text.
//
// A source is a bare name or path, {id} or {order.id}, or has a kind, {query:page}. A kind is lower-case
// ASCII letters; names are letters, digits and any of "_-*$@[]", joined by single dots. Parse takes
// every kind: which ones exist is for the door (HTTP, gRPC, tasks) that uses the key. Literals are UTF-8
// without space, control characters and '%'. Between two sources must stand a punctuation mark or symbol,
// best ':', or nobody could tell where the first value ends.
//
// Everything that is wrong with tmpl is core.ErrInvalid, at once.
func Parse(tmpl string) (*Key, error) {
	k, err := compile(tmpl)
	if err != nil {
		return nil, invalid.Errorf("%v", err)
	}
	return k, nil
}

// MustParse is [Parse] for templates that are constants: it panics on an error.
func MustParse(tmpl string) *Key {
	k, err := compile(tmpl)
	if err != nil {
		panic("key: " + err.Error())
	}
	return k
}

// Name makes the lock name from values in the order of the sources, one for each: what the doors do, for
// code that is no door. A wrong number of values, or an empty one, is core.ErrInvalid.
//
// In values ':', '{', '}', '%', every space and control character, every byte that is not UTF-8, and the
// template's own separators are percent-encoded. Two different lists of values therefore never make the
// same name. A name of more than 200 bytes keeps a readable head and ends in "%sha256:" and the SHA-256 of
// the whole, in hexadecimal.
func (k *Key) Name(values ...string) (string, error) {
	if len(values) != len(k.parts) {
		return "", invalid.Errorf("key %q: %d values for %d sources", k.tmpl, len(values), len(k.parts))
	}
	var x expansion
	x.write(k.head)
	for i, v := range values {
		if err := k.writePart(&x, k.parts[i], v); err != nil {
			return "", err
		}
	}
	return x.name(), nil
}

// Expand makes the lock name as [Key.Name] does, from values that it asks for: value is called once for
// each occurrence of a source, in order, with the source as it is written between the braces, "order.id" or
// "query:page". Its first error ends the expansion and is wrapped, with the source's name. An empty value
// is core.ErrInvalid.
func (k *Key) Expand(value func(source string) (string, error)) (string, error) {
	var x expansion
	x.write(k.head)
	for _, p := range k.parts {
		v, err := value(p.source)
		if err != nil {
			return "", fmt.Errorf("holdfast: key %q: {%s}: %w", k.tmpl, p.source, err)
		}
		if err := k.writePart(&x, p, v); err != nil {
			return "", err
		}
	}
	return x.name(), nil
}

func (k *Key) writePart(x *expansion, p part, value string) error {
	if value == "" {
		return invalid.Errorf("key %q: {%s} is empty", k.tmpl, p.source)
	}
	k.enc.encode(x, value)
	x.write(p.literal)
	return nil
}

// Sources returns the sources in order, as they are written between the braces, repeats included. One
// without a colon is bare; in any other the first colon, which is the only one, ends the kind.
func (k *Key) Sources() []string {
	sources := make([]string, len(k.parts))
	for i, p := range k.parts {
		sources[i] = p.source
	}
	return sources
}

// String returns the template: for observers, a name of low cardinality.
func (k *Key) String() string { return k.tmpl }
