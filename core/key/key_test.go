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
	long := strings.Repeat("ab-", 200)
	for tmpl, values := range map[string][]string{ // the last one is the name; "" is that of Expand
		"jobs:nightly": {"jobs:nightly"}, "order:{id}": {"42", "order:42"}, "{id}": {"42", "42"}, "{id}:order": {"42", "42:order"},
		"t:{header:X-Tenant}:order:{order.id}": {"acme", "42", "t:acme:order:42"}, "{a}:{a}": {"1", "2", "1:2"}, "größe/{id}": {"42", "größe/42"},
		"{a}-{b}": {"1-2/3:4", "ü \x00\xff", ""}, "order:{a}/{b}!": {long, "z" + long, ""},
	} {
		values, want := values[:len(values)-1], values[len(values)-1]
		name, err := MustParse(tmpl).Name(values...)
		asked := 0
		expanded, xerr := MustParse(tmpl).Expand(func(string) (string, error) { asked++; return values[asked-1], nil })
		if err != nil || xerr != nil || name != expanded || want != "" && name != want {
			t.Errorf("%q with %.80q: %q, %v, want %q; Expand: %q, %v", tmpl, values, name, err, want, expanded, xerr)
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
	for _, values := range [][]string{nil, {"s3cret"}, {"s3cret", ""}, {"s3cret", "2", "3"}} {
		name, err := MustParse("{a}:{b}").Name(values...)
		if !errors.Is(err, invalid.Err) || name != "" || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Name(%q) = %q, %v, want invalid.Err without a value", values, name, err)
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
