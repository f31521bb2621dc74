package key

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

func FuzzJSONValue(f *testing.F) {
	paths := []string{"id", "a.b", "a.b.c", "k", "s", "ß", "σ", "größe", "order_id", "a/b", "ID", "\ufffd", ""}
	docs := []string{
		`{"id":42}`, `{"id":"42"}`, `{"id":1,"ID":2}`, `{"id":1,"id":2}`, `{"a":{"b":1},"A":{"b":2}}`,
		`{"a":{"b":{"c":1}},"a":{"b":null}}`, `{"a":{"b":1,"B":2}}`, `{"k":1,"` + "\u212a" + `":2}`,
		`{"s":1,"\u017f":2}`, `{"id":"\ud800"}`, `{"id":"\ud83d\ude00"}`, `{"\ud800":1}`, `{"id":-0}`, `{"id":1e1}`,
		`{"id":null}`, `{"id":""}`, `{"id":[]}`, `{"id":{}}`, `[]`, `null`, `""`, ` `, `{"id":1}{"id":2}`,
		"{\"id\":\"\xff\"}", "{\"id\":\"\x00\"}", `{"größe":"x","GRÖSSE":1}`, `{"order_id":1,"orderid":2,"order-id":3}`,
		`{"a":[{"b":1}]}`, `{"id":99999999999999999999999999}`, `{"x":"}\"","id":true,"y":[{"id":1}]}`,
		`{"i\u0064":"\u0000"}`, strings.Repeat(`{"a":`, 2000),
		strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat(`}`, 300),
		`{"x":` + strings.Repeat(`{"a":`, 9990) + `{"id":7}` + strings.Repeat(`}`, 9990) + `,"id":8}`,
		// Values, and what stands beside them.
		`{"id":"042"}`, `{"id":-7}`, `{"id":0}`, `{"id":` + strings.Repeat("9", 1000) + `}`, `{"id":true}`, `{"id":false}`,
		" \t\r\n{ \"a\" : { \"b\" : 1 , \"c\" : [ ] } , \"d\" : 2 } \n", `{"x":"}","y":["{",{"id":1}],"z":{"id":2},"id":3}`, `{"x":"a\"b\\","id":3}`,
		`{"x":[],"y":{},"id":3,"z":1.5e9}`, `{"other":1,"Other":2,"id":3}`, `{"a":{"x":1,"X":2,"x":3,"b":4}}`, `{"id":" a:b{c}% "}`,
		`{"id":"\"\\\/\b\f\n\r\t"}`, `{"id":"\u0000\u00e9\u65e5\uD83D\uDE00\ufffd"}`, `{"a\/b":5}`, `{"i":1,"idx":2,"":3,"id":4}`,
		`{"x":"\ud800","\udfff":1,"id":4}`, // broken text beside the path does not matter
		// Members that differ in case: encoding/json ignores it when it looks for a member's field, and the last member wins.
		`{"id":1,"id":1}`, `{"Id":1,"id":2}`, `{"id":1,"x":0,"iD":null}`, `{"id":1,"\u0049\u0044":2}`, `{"k":1,"\u212a":2}`, `{"s":1,"` + "\u017f" + `":2}`,
		`{"ß":1,"ẞ":2}`, `{"σ":1,"ς":2}`, `{"a":{"b":1},"A":7}`, `{"a":{"b":1},"a":{"b":1}}`, `{"a":{"b":1},"a":null}`, `{"ID":1,"Id":2}`,
		`{"ID":1}`, `{"A":{"b":1}}`, `{"a":{"B":1}}`, `{"` + "\u212a" + `":1}`,
		// No document, or more than one.
		``, `{`, `{"id":1`, `{"id":1}}`, `{"id":1} x`, `{"id":1},`, `{"id":1}` + "\x00", `{"id":01}`, `{"id":+1}`, `{"id":1,}`, `{'id':1}`, `{id:1}`,
		`{"id":NaN}`, `{"id":"` + "\n" + `"}`, `{"id":"\x41"}`, `{"id":"\u12"}`, `{"id":1 /* c */}`, "\ufeff" + `{"id":1}`,
		`{"id":1,"x":"` + "\xc3" + `"}`, `{"id":1,"` + "\xed\xa0\x80" + `":2}`, `{"id":1,"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
	}
	for _, doc := range docs {
		for _, path := range paths {
			f.Add([]byte(doc), path)
		}
	}
	f.Fuzz(func(t *testing.T, doc []byte, path string) {
		before := bytes.Clone(doc)
		got, err := JSONValue(doc, path)
		if !bytes.Equal(doc, before) {
			t.Fatal("the document was changed")
		}
		if (err == nil) != (got != "") || err != nil && !errors.Is(err, invalid.Err) {
			t.Fatalf("%q at %q: %q, %v", doc, path, got, err)
		}
		want, ok := oracle(doc, path)
		if strings.ContainsRune(want, utf8.RuneError) && err != nil {
			return // the oracle does not see half a surrogate pair
		}
		if ok != (err == nil) || got != want {
			t.Fatalf("%q at %q: %q, %v, want %q, %t", doc, path, got, err, want, ok)
		}
		if err == nil {
			handlersSee(t, doc, path, got)
		}
	})
}

// oracle does what JSONValue promises with encoding/json's own tokens.
func oracle(doc []byte, path string) (value string, ok bool) {
	if !utf8.Valid(doc) || !json.Valid(doc) || !utf8.ValidString(path) {
		return "", false
	}
	for name := range strings.SplitSeq(path, ".") {
		if name == "" {
			return "", false
		}
		var found []json.RawMessage
		var names []string
		dec := json.NewDecoder(bytes.NewReader(doc))
		if tok, _ := dec.Token(); tok != json.Delim('{') {
			return "", false
		}
		for dec.More() {
			var raw json.RawMessage
			tok, _ := dec.Token()
			if err := dec.Decode(&raw); err != nil {
				return "", false
			}
			if member, _ := tok.(string); strings.EqualFold(member, name) {
				found, names = append(found, raw), append(names, member)
			}
		}
		if len(found) != 1 || names[0] != name {
			return "", false
		}
		doc = found[0]
	}
	return oracleScalar(doc)
}

func oracleScalar(raw []byte) (value string, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	tok, err := dec.Token()
	if err != nil {
		return "", false
	}
	switch v := tok.(type) {
	case string:
		return v, v != ""
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		if v == "-0" || strings.ContainsAny(v.String(), ".eE") {
			return "", false
		}
		return v.String(), true
	}
	return "", false
}

// handlersSee decodes doc into a struct, as a handler does: the value that is locked is the one that is worked on.
func handlersSee(t *testing.T, doc []byte, path, want string) {
	t.Helper()
	names := strings.Split(path, ".")
	typ, ok := structFor(names)
	if !ok {
		return
	}
	target := reflect.New(typ)
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	if err := dec.Decode(target.Interface()); err != nil {
		t.Fatalf("%q into %s: %v", doc, typ, err)
	}
	v := target.Elem()
	for range names {
		v = v.Field(0)
	}
	if got := fmt.Sprint(v.Interface()); got != want {
		t.Fatalf("%q at %q: we lock %q, a handler with %s sees %q", doc, path, want, typ, got)
	}
}

// structFor makes a struct type with a field for each name, one inside the other. It has none for names
// that a struct tag cannot hold.
func structFor(names []string) (typ reflect.Type, ok bool) {
	typ = reflect.TypeFor[any]()
	for _, name := range slices.Backward(names) {
		for _, r := range name {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' {
				return nil, false
			}
		}
		tag := reflect.StructTag(fmt.Sprintf(`json:%q`, name))
		typ = reflect.StructOf([]reflect.StructField{{Name: "F", Type: typ, Tag: tag}})
	}
	return typ, true
}
