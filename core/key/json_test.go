package key

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

// What is refused, and what is read, is FuzzJSONValue's matter, beside another decoder; here it is why.
func TestJSONValueSaysWhyItRefuses(t *testing.T) {
	t.Parallel()
	for why, docs := range map[string][][2]string{ // and paths
		"missing":                {{`{}`, "id"}, {`{"order":{}}`, "order.id"}, {`{"a.b":1}`, "a.b"}, {`{"ID":1}`, "id"}, {`{"a":{"B":1}}`, "a.b"}},
		"null":                   {{`{"id":null}`, "id"}},
		"empty":                  {{`{"id":""}`, "id"}},
		"integer":                {{`{"id":1.0}`, "id"}, {`{"id":1e3}`, "id"}, {`{"id":1E3}`, "id"}, {`{"id":-0}`, "id"}},
		"object":                 {{`{"id":{}}`, "id"}},
		"array":                  {{`{"id":[1]}`, "id"}},
		"surrogate":              {{`{"id":"\ud800"}`, "id"}, {`{"id":"\udc00\ud800"}`, "id"}, {`{"id":"\ud800x"}`, "id"}, {`{"id":"\ud83d\\ude00"}`, "id"}},
		"not an object":          {{`[{"id":1}]`, "id"}, {`42`, "id"}, {`{"a":[{"b":1}]}`, "a.b"}, {`{"a":null}`, "a.b"}, {`{"a":"{\"b\":1}"}`, "a.b"}},
		"not made of names":      {{`{"id":1}`, ""}, {`{"a":{"":1}}`, "a."}, {`{"a":1}`, ".a"}, {`{"a":{"b":1}}`, "a..b"}, {`{"\ufffd":1}`, "\xff"}},
		"more than once":         {{`{"id":1,"ID":2}`, "id"}, {`{"a":{"b":1},"A":7}`, "a.b"}},
		"exactly one JSON value": {{`{"id":1}{"id":2}`, "id"}, {`{"id":1,"x":"` + "\xc3" + `"}`, "id"}},
	} {
		for _, doc := range docs {
			if got, err := JSONValue([]byte(doc[0]), doc[1]); got != "" || !errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), why) {
				t.Errorf("%s at %q: %q, %v, want invalid.Err with %q", doc[0], doc[1], got, err, why)
			}
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
