package key

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

func TestJSONValueAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", 1000)
	for _, tt := range []struct{ doc, path, want string }{
		{`{"id":42}`, "id", "42"},
		{`{"id":"42"}`, "id", "42"},
		{`{"id":"042"}`, "id", "042"},
		{`{"id":-7}`, "id", "-7"},
		{`{"id":0}`, "id", "0"},
		{`{"id":` + long + `}`, "id", long},
		{`{"id":true}`, "id", "true"},
		{`{"id":false}`, "id", "false"},
		{`{"order":{"id":42}}`, "order.id", "42"},
		{`{"a":{"b":{"c":{"d":"x"}}}}`, "a.b.c.d", "x"},
		{" \t\r\n{ \"a\" : { \"b\" : 1 , \"c\" : [ ] } , \"d\" : 2 } \n", "a.b", "1"},
		{`{"x":"}","y":["{",{"id":1}],"z":{"id":2},"id":3}`, "id", "3"},
		{`{"x":"a\"b\\","id":3}`, "id", "3"},
		{`{"x":[],"y":{},"id":3,"z":1.5e9}`, "id", "3"},
		{`{"other":1,"Other":2,"id":3}`, "id", "3"}, // twins beside the path do not matter
		{`{"a":{"x":1,"X":2,"x":3,"b":4}}`, "a.b", "4"},
		{`{"id":" a:b{c}% "}`, "id", " a:b{c}% "},
		{`{"id":"größe"}`, "id", "größe"},
		{`{"größe":"x"}`, "größe", "x"},
		{`{"id":"\"\\\/\b\f\n\r\t"}`, "id", "\"\\/\b\f\n\r\t"},
		{`{"id":"\u0000\u00e9\u65e5\uD83D\uDE00\ufffd"}`, "id", "\x00é日😀\ufffd"},
		{`{"\u0069\u0064":5}`, "id", "5"},
		{`{"a\/b":5}`, "a/b", "5"},
		{`{"i":1,"idx":2,"":3,"id":4}`, "id", "4"},
		{`{"o_id":1,"o-id":2,"oid":3}`, "o_id", "1"},
		{`{"x":"\ud800","\udfff":1,"id":4}`, "id", "4"}, // broken text beside the path does not matter
	} {
		if got, err := JSONValue([]byte(tt.doc), tt.path); got != tt.want || err != nil {
			t.Errorf("%.80s at %s: %.80q, %v, want %.80q", tt.doc, tt.path, got, err, tt.want)
		}
	}
}

func TestJSONValueRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ doc, path, why string }{
		{`{}`, "id", "missing"},
		{`{"other":1}`, "id", "missing"},
		{`{"order":{}}`, "order.id", "missing"},
		{`{"a.b":1}`, "a.b", "missing"},
		{`{"id":null}`, "id", "null"},
		{`{"id":""}`, "id", "empty"},
		{`{"id":1.0}`, "id", "integer"},
		{`{"id":1.5}`, "id", "integer"},
		{`{"id":1e3}`, "id", "integer"},
		{`{"id":1E3}`, "id", "integer"},
		{`{"id":-0}`, "id", "integer"},
		{`{"id":{}}`, "id", "object"},
		{`{"id":[1]}`, "id", "array"},
		{`{"id":"\ud800"}`, "id", "surrogate"},
		{`{"id":"\udc00\ud800"}`, "id", "surrogate"},
		{`{"id":"\ud800x"}`, "id", "surrogate"},
		{`{"id":"\ud800\u0041"}`, "id", "surrogate"},
		{`{"id":"\ud83d\\ude00"}`, "id", "surrogate"},
		{`[{"id":1}]`, "id", "not an object"},
		{`"id"`, "id", "not an object"},
		{`null`, "id", "not an object"},
		{`42`, "id", "not an object"},
		{`{"a":[{"b":1}]}`, "a.b", "not an object"},
		{`{"a":null}`, "a.b", "not an object"},
		{`{"a":"{\"b\":1}"}`, "a.b", "not an object"},
		{`{"id":1}`, "", "not made of names"},
		{`{"":1}`, "", "not made of names"},
		{`{"a":{"":1}}`, "a.", "not made of names"},
		{`{"a":1}`, ".a", "not made of names"},
		{`{"a":{"b":1}}`, "a..b", "not made of names"},
		{`{"\ufffd":1}`, "\xff", "not made of names"},
	} {
		got, err := JSONValue([]byte(tt.doc), tt.path)
		if got != "" || !errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s at %q: %q, %v, want invalid.Err with %q", tt.doc, tt.path, got, err, tt.why)
		}
	}
}

func TestJSONValueWantsExactlyOneValueInUTF8(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		``, ` `, `{`, `{"id":1`, `{"id":1}}`, `{"id":1}{"id":2}`, `{"id":1} x`, `{"id":1},`, `{"id":1}` + "\x00",
		`{"id":01}`, `{"id":+1}`, `{"id":1,}`, `{'id':1}`, `{id:1}`, `{"id":NaN}`, `{"id":"` + "\n" + `"}`,
		`{"id":"\x41"}`, `{"id":"\u12"}`, `{"id":1 /* c */}`, "\ufeff" + `{"id":1}`,
		`{"id":"` + "\xff" + `"}`, `{"id":1,"x":"` + "\xc3" + `"}`, `{"id":1,"` + "\xed\xa0\x80" + `":2}`,
		`{"id":1,"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`,
	} {
		got, err := JSONValue([]byte(doc), "id")
		if got != "" || !errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), "exactly one JSON value") {
			t.Errorf("%.60q: %q, %v, want invalid.Err", doc, got, err)
		}
	}
}

// encoding/json ignores case when it looks for a member's field, and the last member wins.
func TestJSONMembersThatDifferOnlyInCaseAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ doc, path string }{
		{`{"id":1,"id":2}`, "id"},
		{`{"id":1,"id":1}`, "id"},
		{`{"id":1,"ID":2}`, "id"},
		{`{"Id":1,"id":2}`, "id"},
		{`{"id":1,"x":0,"iD":null}`, "id"},
		{`{"id":1,"\u0049\u0044":2}`, "id"},
		{`{"k":1,"` + "\u212a" + `":2}`, "k"}, // the Kelvin sign
		{`{"k":1,"\u212a":2}`, "k"},
		{`{"s":1,"` + "\u017f" + `":2}`, "s"}, // the long s
		{`{"ß":1,"ẞ":2}`, "ß"},
		{`{"σ":1,"ς":2}`, "σ"},
		{`{"a":{"b":1},"A":{"b":2}}`, "a.b"},
		{`{"a":{"b":1},"A":7}`, "a.b"},
		{`{"a":{"b":1,"B":2}}`, "a.b"},
		{`{"a":{"b":1},"a":{"b":1}}`, "a.b"},
		{`{"a":{"b":1},"a":null}`, "a.b"},
		{`{"ID":1,"Id":2}`, "id"},
	} {
		got, err := JSONValue([]byte(tt.doc), tt.path)
		if got != "" || !errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), "more than once") {
			t.Errorf("%s at %s: %q, %v, want invalid.Err", tt.doc, tt.path, got, err)
		}
	}
}

func TestJSONMemberInAnotherCaseCountsAsMissing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ doc, path string }{
		{`{"ID":1}`, "id"}, {`{"id":1}`, "Id"}, {`{"A":{"b":1}}`, "a.b"}, {`{"a":{"B":1}}`, "a.b"},
		{`{"` + "\u212a" + `":1}`, "k"},
	} {
		if got, err := JSONValue([]byte(tt.doc), tt.path); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("%s at %s: %q, %v, want a missing value", tt.doc, tt.path, got, err)
		}
	}
}

func TestJSONErrorsHoldNothingOfTheDocument(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	for _, doc := range []string{
		`s3cret`, `"s3cret"`, `{"s3cret":1}`, `{"id":["s3cret"]}`, `{"id":{"s3cret":1}}`, `{"id":"s3cret\ud800"}`,
		`{"id":"s3cret","id":"s3cret"}`, `{"id":"s3cret"`, `{"id":"s3cret"} s3cret`, `{"ID":"s3cret"}`,
	} {
		if _, err := JSONValue([]byte(doc), "id"); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", doc, err)
		} else if !strings.Contains(err.Error(), `"id"`) {
			t.Errorf("%s: %v does not name the path", doc, err)
		}
	}
	if _, err := JSONValue([]byte(`{"id":12345.678}`), "id"); err == nil || strings.Contains(err.Error(), "12345") {
		t.Errorf("a number: %v", err)
	}
}

func TestDeepJSONIsReadWithoutRecursion(t *testing.T) {
	t.Parallel()
	const depth = 9990
	nested := strings.Repeat(`{"a":`, depth) + `{"id":7}` + strings.Repeat(`}`, depth)
	if got, err := JSONValue([]byte(`{"x":`+nested+`,"id":8}`), "id"); got != "8" || err != nil {
		t.Errorf("beside a deep value: %q, %v", got, err)
	}
	if got, err := JSONValue([]byte(nested), strings.Repeat("a.", 50)+"a"); err == nil {
		t.Errorf("an object deep inside is a value: %q", got)
	}
}

// Allocations are counted without other tests running: no t.Parallel.
func TestJSONValueAllocationsDoNotGrowWithTheDocument(t *testing.T) { //nolint:paralleltest // it counts allocations, which other tests have too
	for _, text := range []string{
		`{"order":{"id":"abc","x":[1,2,{"y":"z"}]},"z":null}`,
		`{"order":{"id":4242},"\u006frdeR2":"\u00e9"}`,
		`{"order":{"id":"\u00e9\n"}}`,
		`{` + strings.Repeat(`"\u0041\u0042":"x",`, 1000) + `"order":{"id":1234}}`,
	} {
		doc := []byte(text)
		n := testing.AllocsPerRun(100, func() {
			if _, err := JSONValue(doc, "order.id"); err != nil {
				t.Fatal(err)
			}
		})
		if n > 4 { // one, the result; more under the race detector, where json.Valid's pool forgets
			t.Errorf("%.60s: %v allocations", doc, n)
		}
	}
}
