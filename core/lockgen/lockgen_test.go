package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/core/lockgen/testdata/shop"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestWhatIsWrittenIsAsItWasWritten(t *testing.T) {
	t.Parallel()
	s, err := parse("testdata/shop/orders.go")
	backendtest.OK(t, err)
	text, err := s.write("testdata/shop/orders_lock.go")
	backendtest.OK(t, err)
	there, err := os.ReadFile("testdata/shop/orders_lock.go")
	if err != nil || !bytes.Equal(there, text) {
		t.Errorf("run go generate in testdata/shop: %v", err)
	}
}

// orders notes which names are held while a method runs.
type orders struct {
	names []string
	err   error
}

func (o *orders) held(ctx context.Context) error {
	o.names = nil
	if x, ok := core.FromContext(ctx); ok {
		o.names = append(o.names, x.Name())
	}
	for _, name := range []string{"account:1", "account:2"} {
		if _, err := core.FenceFor(ctx, name); err == nil && len(o.names) < 2 && (len(o.names) == 0 || o.names[0] != name) {
			o.names = append(o.names, name)
		}
	}
	slices.Sort(o.names)
	return o.err
}

func (o *orders) Close() error { return nil }
func (o *orders) Refund(ctx context.Context, _ *shop.Refund) (string, error) {
	return "receipt", o.held(ctx)
}
func (o *orders) Ship(ctx context.Context, _ string) error { return o.held(ctx) }
func (o *orders) Move(ctx context.Context, _, _ int64, _ bool, notes ...string) (int, error) {
	return len(notes), o.held(ctx)
}
func (o *orders) Count(ctx context.Context) (int, io.Writer, error) {
	return 1, io.Discard, o.held(ctx)
}
func (o *orders) Float(ctx context.Context, _ shop.Refund) error { return o.held(ctx) }
func (o *orders) Debit(ctx context.Context, _ shop.Refund, _ string) error {
	return o.held(ctx)
}
func (o *orders) Credit(ctx context.Context, _ *shop.Transfer) error { return o.held(ctx) }
func (o *orders) List(ctx context.Context) ([]string, error)         { return nil, o.held(ctx) }

func locked(t *testing.T) (*core.Locker, *orders, shop.Orders) {
	t.Helper()
	locks, err := core.New(memlock.New(), core.WithWait(0))
	backendtest.OK(t, err)
	t.Cleanup(func() { _ = locks.Close(context.Background()) }) // nothing is held
	o := &orders{}
	x, err := shop.LockOrders(locks, o)
	backendtest.OK(t, err)
	return locks, o, x
}

func TestMethodsRunUnderTheLocksOfTheirComments(t *testing.T) {
	t.Parallel()
	_, o, x := locked(t)
	const id = "0B9A7F5C-2D4B-4A5B-9C3E-111111111111"
	for _, row := range []struct {
		call func() error
		want string
	}{
		{func() error {
			s, err := x.Refund(t.Context(), &shop.Refund{OrderID: "42"})
			return is(s, "receipt", err)
		}, "[order:42]"},
		{func() error { return x.Ship(t.Context(), id) }, "[order:" + strings.ToLower(id) + "]"},
		{func() error { n, err := x.Move(t.Context(), 2, 1, true, "a", "b"); return is(n, 2, err) }, "[account:1 account:2]"},
		{func() error { n, w, err := x.Count(t.Context()); return is(n == 1 && w == io.Discard, true, err) }, "[orders]"},
		{func() error { return x.Debit(t.Context(), shop.Refund{From: &shop.Account{ID: 7}}, "noon") }, "[account:7:noon]"},
		{func() error { return x.Credit(t.Context(), &shop.Transfer{Account: &shop.Account{ID: 7}}) }, "[account:7]"},
		{func() error { _, err := x.List(t.Context()); return err }, "[]"},
		{x.Close, "[]"},
	} {
		if err := row.call(); err != nil || fmt.Sprint(o.names) != row.want {
			t.Errorf("%v: held %v, want %s", err, o.names, row.want)
		}
	}
}

func is[T comparable](got, want T, err error) error {
	if got != want {
		return fmt.Errorf("%v, not %v", got, want)
	}
	return err
}

func TestWhatAMethodReturnsAndWhatKeepsItFromRunning(t *testing.T) {
	t.Parallel()
	locks, o, x := locked(t)
	o.err = errors.New("of the method")
	if _, err := x.Refund(t.Context(), &shop.Refund{OrderID: "42"}); err != o.err { //nolint:errorlint // as it is
		t.Errorf("%v", err)
	}
	for what, row := range map[string]struct {
		call func() error
		want error
	}{
		"a nil request":       {func() error { _, err := x.Refund(t.Context(), nil); return err }, key.ErrMissing},
		"an empty field":      {func() error { _, err := x.Refund(t.Context(), &shop.Refund{}); return err }, key.ErrMissing},
		"a nil part":          {func() error { return x.Debit(t.Context(), shop.Refund{}, "noon") }, key.ErrMissing},
		"a nil embedded part": {func() error { return x.Credit(t.Context(), &shop.Transfer{Amount: 1}) }, key.ErrMissing},
		"no UUID":             {func() error { return x.Ship(t.Context(), "42") }, core.ErrInvalid},
		"a float":             {func() error { return x.Float(t.Context(), shop.Refund{Ratio: 0.5}) }, adapter.ErrMisconfigured},
		"somebody else's": {func() error {
			return held(t, locks, "orders", func() error { _, _, err := x.Count(t.Context()); return err })
		}, core.ErrHeld},
	} {
		o.names = []string{"it did not run"}
		if err := row.call(); !errors.Is(err, row.want) || o.names[0] != "it did not run" {
			t.Errorf("%s: %v, %v", what, err, o.names)
		}
	}
	o.err = nil
	const id = "0b9a7f5c-2d4b-4a5b-9c3e-111111111111"
	if err := errors.Join(x.Ship(t.Context(), id), x.Ship(t.Context(), id)); !errors.Is(err, core.ErrDuplicate) {
		t.Errorf("the second time: %v", err)
	}
	if _, err := x.Refund(t.Context(), &shop.Refund{OrderID: id}); err != nil {
		t.Errorf("dedup is of a method, not of a name: %v", err)
	}
	for _, l := range []*core.Locker{nil, locks} {
		if _, err := shop.LockOrders(l, nil); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%v", err)
		}
	}
}

func held(t *testing.T, locks *core.Locker, name string, f func() error) error {
	t.Helper()
	x, err := locks.Acquire(t.Context(), name)
	backendtest.OK(t, err)
	return errors.Join(f(), x.Release(t.Context()))
}

func TestWhatCannotWorkIsRefusedWhereItStands(t *testing.T) {
	t.Parallel()
	const locked = "//holdfast:lock o\n\tG(ctx context.Context) error\n\t"
	for text, want := range map[string]string{
		"//holdfast:lock order:{nobody}\n\tF(ctx context.Context, id int) error":                   `there is no parameter "nobody"`,
		"//holdfast:lock order:{ctx}\n\tF(ctx context.Context) error":                              `there is no parameter "ctx"`,
		"//holdfast:lock order:{id\n\tF(ctx context.Context, id int) error":                        "order:{id",
		"//holdfast:lock\n\tF(ctx context.Context, id int) error":                                  "template",
		"//holdfast:lock o wait=soon\n\tF(ctx context.Context) error":                              "such as 2s",
		"//holdfast:lock o waits=2s\n\tF(ctx context.Context) error":                               "there are wait",
		"//holdfast:lock o limit=many\n\tF(ctx context.Context) error":                             "a number",
		"//holdfast:lock o wait=2s p\n\tF(ctx context.Context) error":                              "templates come first",
		"//holdfast:lock order:{id}\n\tF(id int) error":                                            "first parameter",
		"//holdfast:lock order:{id}\n\tF(ctx context.Context, id int) (error, bool)":               "last result",
		"//holdfast:lock order:{id}\n\tF(ctx context.Context, id int)":                             "last result",
		"//holdfast:lock order:{_}\n\tF(ctx context.Context, _ int) error":                         "no parameter",
		"//holdfast:lock o\n\tF(ctx context.Context, string int) error":                            "rename it",
		"//holdfast:lock o\n\tF(context context.Context) error":                                    "rename it",
		"//holdfast:lock o:{lockSource}\n\tF(ctx context.Context, lockSource string) error":        "rename it", // else all would share one lock
		"//holdfast:lock o\n\tF(a, b context.Context) error":                                       "one context",
		"F(ctx context.Context) error":                                                             "no method",
		locked + "B\n}\n\ntype B interface {\n\t//holdfast:lock b\n\tF(ctx context.Context) error": "A embeds an interface",
		locked + "B[int]\n}\n\ntype B[T any] interface {\n\tF(ctx context.Context) error":          "A embeds an interface",
		locked + "F(ctx context.Context) error //holdfast:lock o":                                  "stands at no method",
		locked + "//holdfast:lock o\n\n\tF(ctx context.Context) error":                             "stands at no method",
		locked + "//holdfast:lock o\n\tcontext.Context":                                            "stands at no method",
		locked + "F(ctx context.Context) error\n\t//holdfast:lock o":                               "stands at no method",
		locked + "// holdfast:lock o\n\tF(ctx context.Context) error":                              "stands at no method, or is misspelled",
		locked + "//holdfast:Lock o\n\tF(ctx context.Context) error":                               "stands at no method, or is misspelled",
		locked + "}\n\n//holdfast:lock o\ntype B interface {":                                      "stands at no method",
		"//holdfast:lock o\n\tF(ctx context.Context) (unknown.T, error)":                           "package unknown",
	} {
		file := filepath.Join(t.TempDir(), "a.go")
		source := "package a\n\nimport \"context\"\n\ntype A interface {\n\t" + text + "\n}\n"
		backendtest.OK(t, os.WriteFile(file, []byte(source), 0o600))
		err := generate(file)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %q", text, err, want)
		}
	}
}

// The compiler says of the comment what is wrong with it.
func TestAFieldThatIsNotThereIsACompileErrorAtTheComment(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs("testdata/wrong")
	backendtest.OK(t, err)
	s, err := parse(filepath.Join(dir, "wrong.go"))
	backendtest.OK(t, err)
	text, err := s.write("wrong_lock.go")
	backendtest.OK(t, err)
	file := filepath.Join(t.TempDir(), "wrong_lock.go")
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	backendtest.OK(t, os.WriteFile(file, text, 0o600))
	backendtest.OK(t, os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, filepath.Join(dir, "wrong_lock.go"), file), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./testdata/wrong").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "wrong.go:11") || !strings.Contains(string(out), "Nothing") {
		t.Errorf("%v:\n%s", err, out)
	}
}
