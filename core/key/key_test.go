package key

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

func TestKeyPutsValuesInPlaceOfSources(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tmpl   string
		values []string
		want   string
	}{
		{"jobs:nightly", nil, "jobs:nightly"},
		{"order:{id}", []string{"42"}, "order:42"},
		{"{id}", []string{"42"}, "42"},
		{"{id}:order", []string{"42"}, "42:order"},
		{"t:{header:X-Tenant}:order:{order.id}", []string{"acme", "42"}, "t:acme:order:42"},
		{"{a}:{a}", []string{"1", "2"}, "1:2"},
		{"größe/{id}", []string{"42"}, "größe/42"},
	} {
		name, err := MustParse(tt.tmpl).Name(tt.values...)
		if err != nil || name != tt.want {
			t.Errorf("%q with %q: %q, %v, want %q", tt.tmpl, tt.values, name, err, tt.want)
		}
	}
}

func TestKeyKeepsTemplateAndSourcesAsWritten(t *testing.T) {
	t.Parallel()
	const tmpl = "a:{id}:{order.id|int}:{query:page|uuid}:{header:X-Tenant|text}:{id}:{*}:{body:@a.$b[0]}:{größe}"
	want := []Source{
		{"id", NoForm}, {"order.id", Int}, {"query:page", UUID}, {"header:X-Tenant", Text}, {"id", NoForm}, {"*", NoForm},
		{"body:@a.$b[0]", NoForm}, {"größe", NoForm},
	}
	k := MustParse(tmpl)
	if k.String() != tmpl {
		t.Errorf("String() = %q, want %q", k, tmpl)
	}
	if got := k.Sources(); !slices.Equal(got, want) {
		t.Errorf("Sources() = %q, want %q", got, want)
	}
	if got := MustParse("jobs:nightly").Sources(); len(got) != 0 {
		t.Errorf("Sources() of a template without any = %q", got)
	}
}

func TestSourcesIsACopy(t *testing.T) {
	t.Parallel()
	k := MustParse("order:{id}")
	k.Sources()[0] = Source{Name: "other"}
	if got := k.Sources()[0]; got.Name != "id" {
		t.Errorf("a caller has changed the key's source to %q", got)
	}
}

func TestNameWantsOneValueForEachSource(t *testing.T) {
	t.Parallel()
	k := MustParse("{a}:{b}")
	for _, values := range [][]string{nil, {"1"}, {"1", "2", "3"}} {
		if name, err := k.Name(values...); !errors.Is(err, invalid.Err) || name != "" {
			t.Errorf("Name(%q) = %q, %v, want invalid.Err", values, name, err)
		}
	}
	if _, err := MustParse("jobs:nightly").Name("1"); !errors.Is(err, invalid.Err) {
		t.Errorf("a value without a source: %v, want invalid.Err", err)
	}
}

func TestExpandAsksOncePerOccurrenceInOrder(t *testing.T) {
	t.Parallel()
	var asked []string
	name, err := MustParse("{b}:{query:a}:{b}").Expand(func(source string) (string, error) {
		asked = append(asked, source)
		return strings.Repeat("x", len(asked)), nil
	})
	if err != nil || name != "x:xx:xxx" {
		t.Errorf("Expand = %q, %v", name, err)
	}
	if want := []string{"b", "query:a", "b"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}

func TestExpandMakesTheNameThatNameMakes(t *testing.T) {
	t.Parallel()
	for _, tmpl := range []string{"{a}:{b}", "{a}-{b}", "order:{a}/{b}!"} {
		k := MustParse(tmpl)
		for _, v := range []string{"42", "1-2/3:4", "ü \x00\xff", strings.Repeat("ab-", 200)} {
			name, err := k.Name(v, "z"+v)
			expanded, xerr := k.Expand(func(source string) (string, error) {
				return map[string]string{"a": v, "b": "z" + v}[source], nil
			})
			if err != nil || xerr != nil || name != expanded {
				t.Errorf("%q: Name = %q, %v; Expand = %q, %v", tmpl, name, err, expanded, xerr)
			}
		}
	}
}

func TestExpandPassesTheFirstResolverErrorThrough(t *testing.T) {
	t.Parallel()
	cause := &fs.PathError{Op: "read", Path: "body", Err: fs.ErrClosed}
	calls := 0
	name, err := MustParse("{a}:{body:b.c}:{d}").Expand(func(source string) (string, error) {
		calls++
		if source == "a" {
			return "1", nil
		}
		return "ignored", cause
	})
	if name != "" || calls != 2 {
		t.Errorf("name %q after %d calls, want none after 2", name, calls)
	}
	if got, ok := errors.AsType[*fs.PathError](err); !ok || got != cause || !errors.Is(err, fs.ErrClosed) {
		t.Errorf("the resolver's error is lost: %v", err)
	}
	if errors.Is(err, invalid.Err) {
		t.Errorf("the resolver's error became invalid.Err: %v", err)
	}
	if !strings.Contains(err.Error(), `": {body:b.c}: `) {
		t.Errorf("the error does not name the source: %v", err)
	}
}

func TestEmptyValueIsRefusedWithTheNameOfItsSource(t *testing.T) {
	t.Parallel()
	k := MustParse("{a}:{query:b}")
	_, err := k.Name("1", "")
	_, xerr := k.Expand(func(source string) (string, error) {
		return strings.TrimPrefix(source, "query:b"), nil
	})
	for _, err := range []error{err, xerr} {
		if !errors.Is(err, invalid.Err) || !strings.Contains(err.Error(), "{query:b}: holdfast: invalid value: missing or empty") {
			t.Errorf("empty value: %v, want invalid.Err naming {query:b}", err)
		}
	}
}

func TestErrorsOfKeysHoldNoValue(t *testing.T) {
	t.Parallel()
	k := MustParse("{a}:{b}")
	for _, values := range [][]string{{"s3cret", ""}, {"s3cret"}} {
		if _, err := k.Name(values...); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Name(%q): %v", values, err)
		}
	}
}

func TestMustParseKeyPanicsWithThePackageName(t *testing.T) {
	t.Parallel()
	defer func() {
		msg, _ := recover().(string)
		if !strings.HasPrefix(msg, `key: key "order:{id": `) {
			t.Errorf("panic %q, want one that begins with the package and the template", msg)
		}
	}()
	MustParse("order:{id")
}

func TestKeyDoesNotChangeWhenItIsUsed(t *testing.T) {
	t.Parallel()
	used, fresh := MustParse("{a}-{b}–{c}"), MustParse("{a}-{b}–{c}")
	for range 3 {
		if _, err := used.Name("1-–", strings.Repeat("é", 300), "\xff"); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(used, fresh) {
		t.Errorf("a used key %+v is not as new %+v", used, fresh)
	}
}
