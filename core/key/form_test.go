package key

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

func TestAFormHasOneSpellingOfAValueOrRefusesIt(t *testing.T) {
	t.Parallel()
	const id = "123e4567-e89b-12d3-a456-426614174000"
	for form, values := range map[string]map[string]string{
		"int": {
			"42": "42", "042": "42", "+42": "42", "-42": "-42", "-042": "-42", "0": "0", "-0": "0", "000": "0", "+0": "0",
			"9223372036854775808": "9223372036854775808", strings.Repeat("0", 300) + "7": "7",
			"+": "", "-": "", "--1": "", "+-1": "", "1-": "", "1_000": "", "0x2a": "", "4.2": "", "4e1": "", "\n42": "", "4 2": "", "٤٢": "", "a": "",
		},
		"uuid": {
			id: id, strings.ToUpper(id): id, "{" + id + "}": id, "urn:uuid:" + id: id, "URN:UUID:" + strings.ToUpper(id): id,
			strings.ReplaceAll(id, "-", ""): id,
			id[1:]:                          "", id + "0": "", "{" + id + ")": "", "urn:uid::" + id: "", strings.Replace(id, "1", "g", 1): "",
			"12-3e4567e89b-12d3-a456-426614174000": "", "{" + strings.ReplaceAll(id, "-", "") + "}": "", strings.Replace(id, "-", "0", 1): "", "42": "",
		},
		"text": {"042": "042", "A7": "A7", "a7": "a7", " ": "%20"},
	} {
		k := MustParse("order:{id|" + form + "}")
		for value, want := range values {
			name, err := k.Name(value)
			source, blamed := errors.AsType[*SourceError](err)
			if want != "" && (err != nil || name != "order:"+want) ||
				want == "" && (!blamed || source.Source != "id" || source.Reason() != "invalid" || !errors.Is(err, invalid.Err) || strings.Contains(err.Error(), value+" ")) {
				t.Errorf("%s, %q: %q, %v", form, value, name, err)
			}
			if asked, why := k.Expand(func(string) (string, error) { return value, nil }); asked != name || (why == nil) != (err == nil) {
				t.Errorf("%s, %q: Expand has %q, %v", form, value, asked, why)
			}
		}
		if _, err := k.Name(""); !errors.Is(err, ErrMissing) {
			t.Errorf("%s, no value: %v", form, err)
		}
	}
}

func TestParseKnowsNoOtherForm(t *testing.T) {
	t.Parallel()
	for _, tmpl := range []string{"{id|}", "{id|integer}", "{id|INT}", "{id| int}", "{id|int|int}", "{|int}", "{|}", "{query:|int}"} {
		if k, err := Parse(tmpl); !errors.Is(err, invalid.Err) {
			t.Errorf("%s: %v, %v", tmpl, k, err)
		}
	}
}

func TestAListHasTemplatesWithASourceAndOneSpaceBetween(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]int{
		"order:{id|int}": 1, "jobs:nightly": 1, "account:{from|int} account:{to|int}": 2, "{a} {b} {c}": 3,
		"": 0, " ": 0, "a:{x}  b:{y}": 0, " a:{x}": 0, "a:{x} ": 0, "a:{x}\tb:{y}": 0, "a:{x}\nb:{y}": 0,
		"order: {id}": 0, "order:{id} nightly": 0, "a:{x} a:{x}": 0, "a:{x} b:{y": 0,
	} {
		all, err := ParseAll(list)
		if len(all) != want || (err == nil) != (want > 0) || err != nil && !errors.Is(err, invalid.Err) {
			t.Errorf("%q: %v, %v", list, all, err)
		}
	}
}

// The same number is the same name, and another number is another one.
func FuzzIntIsANumber(f *testing.F) {
	for _, v := range []string{"42", "042", "+42", "-42", "-0", "00", "", "+", "1_0", "0x10", "4.0", strings.Repeat("9", 40)} {
		f.Add(v)
	}
	digits := regexp.MustCompile(`^[+-]?\d+$`)
	f.Fuzz(func(t *testing.T, value string) {
		got, err := canonicalInt(value)
		if is := digits.MatchString(value); is != (err == nil) {
			t.Fatalf("%q: %q, %v", value, got, err)
		}
		if err != nil {
			return
		}
		n, _ := new(big.Int).SetString(value, 10)
		if got != n.String() {
			t.Fatalf("%q: %q, want %q", value, got, n)
		}
	})
}
