// Package key makes lock names from values by a template, such as "order:{id|int}". Middleware uses it,
// and other code can use it to make the same names. The rules are in docs/guides/names.md.
package key

import (
	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

// Key makes lock names from values. It is a compiled template such as "order:{id|int}" or
// "tenant:{header:X-Tenant|text}:{order.id}". Make it once with [Parse], when the program starts. A Key
// never changes and is safe for concurrent use. The zero Key makes no usable name.
type Key struct {
	tmpl  string
	head  string // the text before the first source
	parts []part
	enc   valueEncoder
}

// part is one source and the literal that follows it.
type part struct {
	source  Source
	literal string
}

// Parse compiles a template: literal text with any number of {sources}. The literal text, plus one
// byte for each source, has at most 200 bytes.
//
// A source is a bare name or path, {id} or {order.id}, or it has a kind, {query:page}. A kind is
// lower-case ASCII letters. Names are letters, digits and any of "_-*$@[]", joined by single dots.
// Behind it there may be a [Form], {id|int}, {id|uuid} or {id|text}: text that may come in several
// spellings needs one.
// Parse accepts every kind; which kinds exist depends on the middleware (HTTP, gRPC, tasks) that uses the
// key. Literals are UTF-8 without braces, spaces, control characters and '%'. Between two sources
// there must be a punctuation mark or a symbol, best ':'. Without it nobody could tell where the
// first value ends.
//
// A template that breaks a rule is core.ErrInvalid, at once.
func Parse(tmpl string) (*Key, error) {
	k, err := compile(tmpl)
	if err != nil {
		return nil, invalid.Errorf("%v", err)
	}
	return k, nil
}

// MustParse is [Parse] for constant templates. It panics on an error.
func MustParse(tmpl string) *Key {
	k, err := compile(tmpl)
	if err != nil {
		panic("key: " + err.Error())
	}
	return k
}

// Name makes the lock name from one value for each source, in the order of the sources. It does
// what the middleware does, for other code. A wrong number of values is core.ErrInvalid, and an empty value
// is a *[SourceError] with [ErrMissing].
//
// A value of a source with a form is brought into its one spelling first. If it is none, the error is a
// *SourceError.
//
// In values these are percent-encoded: ':', '{', '}', '%', every space and control character, every
// byte that is not UTF-8, and the template's own separators. Therefore two different lists of
// values never make the same name. If a name has more than 200 bytes, it keeps a readable head and
// ends in "%sha256:" and the SHA-256 of the whole, in hexadecimal.
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

// Expand makes the lock name as [Key.Name] does, and asks for the values: it calls value once for
// each occurrence of a source, in order. The argument is the source's name as it is written between the
// braces, "order.id" or "query:page". The first error ends the expansion, and becomes the Err of a
// *[SourceError]. An empty value is [ErrMissing].
func (k *Key) Expand(value func(source string) (string, error)) (string, error) {
	var x expansion
	x.write(k.head)
	for _, p := range k.parts {
		v, err := value(p.source.Name)
		if err != nil {
			return "", &SourceError{k.tmpl, p.source.Name, err}
		}
		if err := k.writePart(&x, p, v); err != nil {
			return "", err
		}
	}
	return x.name(), nil
}

func (k *Key) writePart(x *expansion, p part, value string) error {
	if value == "" {
		return &SourceError{k.tmpl, p.source.Name, ErrMissing}
	}
	value, err := p.source.Form.canonical(value)
	if err != nil {
		return &SourceError{k.tmpl, p.source.Name, err}
	}
	k.enc.encode(x, value)
	x.write(p.literal)
	return nil
}

// Sources returns the sources in order, with repetitions. A source whose name has no colon is bare.
// Otherwise its only colon ends the kind.
func (k *Key) Sources() []Source {
	sources := make([]Source, len(k.parts))
	for i, p := range k.parts {
		sources[i] = p.source
	}
	return sources
}

// String returns the template, which is a name of low cardinality for observers.
func (k *Key) String() string { return k.tmpl }
