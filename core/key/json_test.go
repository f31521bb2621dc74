package key

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

// What is refused, and what is read, is FuzzJSONValue's matter, beside another decoder; here it is why. No error has anything of the
// document, here the word "secret".
func TestJSONValueSaysWhyItRefusesAndNothingOfTheDocument(t *testing.T) {
	t.Parallel()
	for why, docs := range map[string][][2]string{ // and paths
		"missing":           {{`{"secret":1}`, "id"}, {`{"ID":"secret"}`, "id"}, {`{"a":{"B":"secret"}}`, "a.b"}},
		"null":              {{`{"id":null,"secret":1}`, "id"}},
		"empty":             {{`{"id":"","secret":1}`, "id"}},
		"integer":           {{`{"id":12345.678}`, "id"}, {`{"id":-0}`, "id"}},
		"object":            {{`{"id":{"secret":1}}`, "id"}},
		"array":             {{`{"id":["secret"]}`, "id"}},
		"surrogate":         {{`{"id":"secret\ud800"}`, "id"}, {`{"id":"\udc00\ud800"}`, "id"}},
		"not an object":     {{`["secret"]`, "id"}, {`"secret"`, "id"}, {`{"a":"secret"}`, "a.b"}},
		"not made of names": {{`{"secret":1}`, ""}, {`{"a":{"":1}}`, "a."}, {`{"\ufffd":1}`, "\xff"}},
		"more than once":    {{`{"id":"secret","ID":"secret"}`, "id"}, {`{"a":{"b":1},"A":7}`, "a.b"}},
		"exactly one JSON value": {
			{`secret`, "id"}, {`{"id":"secret"`, "id"}, {`{"id":1} secret`, "id"}, {`{"id":1,"secret":"` + "\xc3" + `"}`, "id"},
		},
	} {
		for _, doc := range docs {
			got, err := JSONValue([]byte(doc[0]), doc[1])
			if got != "" || !errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), why) {
				t.Errorf("%s at %q: %q, %v, want invalid.Err with %q", doc[0], doc[1], got, err, why)
			} else if text := err.Error(); strings.Contains(text, "secret") || strings.Contains(text, "12345") || doc[1] == "id" && !strings.Contains(text, `"id"`) {
				t.Errorf("%s at %q: %v shows the document, or not the path", doc[0], doc[1], err)
			}
			missing := why == "missing" || why == "null" || why == "empty"
			if errors.Is(err, ErrMissing) != missing || errors.Is(err, ErrAmbiguous) != (why == "more than once") {
				t.Errorf("%s at %q: %v is of another kind", doc[0], doc[1], err)
			}
		}
	}
}
