package key

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

func TestExpandAsksOncePerOccurrenceInOrderAndMakesTheSameName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ab-", 200)
	for tmpl, row := range map[string]struct{ sources, values []string }{
		"jobs:nightly":                         {},
		"{b}:{query:a}:{b}":                    {[]string{"b", "query:a", "b"}, []string{"x", "xx", "xxx"}},
		"t:{header:X-Tenant}:order:{order.id}": {[]string{"header:X-Tenant", "order.id"}, []string{"acme", "42"}},
		"{a|text}-{b}":                         {[]string{"a", "b"}, []string{"1-2/3:4", "ü \x00\xff"}},
		"order:{a}/{b}!":                       {[]string{"a", "b"}, []string{long, "z" + long}},
	} {
		k := MustParse(tmpl)
		var asked []string
		name, err := k.Expand(func(source string) (string, error) {
			asked = append(asked, source)
			return row.values[len(asked)-1], nil
		})
		if want := mustName(t, k, row.values...); err != nil || name != want || !slices.Equal(asked, row.sources) {
			t.Errorf("%q asks for %q: %q, %v, want %q", tmpl, asked, name, err, want)
		}
	}
	for value, want := range map[string]string{"+042": "42", "x": ""} {
		name, err := MustParse("{id|int}").Expand(func(string) (string, error) { return value, nil })
		if name != want || errors.Is(err, invalid.Err) != (want == "") {
			t.Errorf("%q as an integer: %q, %v, want %q", value, name, err, want)
		}
	}
}

func TestNameWantsOneValueForEachSource(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{nil, {"s3cret"}, {"s3cret", ""}, {"s3cret", "2", "3"}} {
		name, err := MustParse("{a}:{query:b}").Name(values...)
		if !errors.Is(err, invalid.Err) || name != "" || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Name(%q) = %q, %v, want invalid.Err without a value", values, name, err)
		}
		if len(values) == 2 && !strings.Contains(err.Error(), "{query:b}: holdfast: invalid value: missing or empty") {
			t.Errorf("%v does not name the empty source", err)
		}
	}
}

func TestExpandPassesTheFirstResolverErrorThrough(t *testing.T) {
	t.Parallel()
	cause := errors.New("closed")
	calls := 0
	name, err := MustParse("{a}:{body:b.c}:{d}").Expand(func(source string) (string, error) {
		calls++
		return "1", map[string]error{"body:b.c": cause}[source]
	})
	if name != "" || calls != 2 || !errors.Is(err, cause) || errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), `": {body:b.c}: `) {
		t.Errorf("%q after %d calls, %v: not the resolver's, or it does not name the source", name, calls, err)
	}
}
