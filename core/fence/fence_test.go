package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/fence"
)

func TestParseTakesDecimalDigitsOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{
		"1":                1,
		"1795000000000001": 1_795_000_000_000_001,
		"9007199254740992": fence.Max,
	} {
		if got, err := fence.Parse(text); got != want || err != nil {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "0", "00", "01", "-1", "+1", " 1", "1 ", "1\n", "1, 2", "1,2", "0x1", "1_000", "1e3", "1.0",
		"9007199254740993", "18446744073709551615", "18446744073709551616", strings.Repeat("9", 1000),
		"NaN", "Inf", "true", "１", "١", "1\x00", "\xff",
	} {
		got, err := fence.Parse(text)
		if got != 0 || !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("%.30q: %d, %v; want %v", text, got, err, fence.ErrInvalid)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%.30q: the error has %d bytes", text, len(err.Error()))
		}
	}
	for _, values := range [][]string{nil, {"1", "1"}, {"1", "2"}} { // a header that is missing, or there twice
		if got, err := fence.Parse(values...); got != 0 || !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("%q: %d, %v", values, got, err)
		}
	}
}

func TestErrorsSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	_, invalid := fence.Parse("x")
	for _, err := range []error{&fence.StaleError{Key: "order:1", Fence: 1, Seen: 2}, fence.ErrStale, invalid, fence.ErrInvalid} {
		typed, ok := err.(interface{ ErrorType() string })
		isStale, isInvalid := errors.Is(err, fence.ErrStale), errors.Is(err, fence.ErrInvalid)
		if !ok || isStale == isInvalid || typed.ErrorType() != map[bool]string{true: "stale", false: "invalid"}[isStale] {
			t.Errorf("%v: stale %t, invalid %t", err, isStale, isInvalid)
		}
	}
}

// badInput is what no guard takes, by what it is.
func badInput() map[string]bad {
	return map[string]bad{
		"no fence":          {"order:1", 0},
		"fence too large":   {"order:1", fence.Max + 1},
		"negative as uint":  {"order:1", 1<<64 - 1},
		"empty key":         {"", 1},
		"long key":          {strings.Repeat("x", 201), 1},
		"newline in key":    {"order\n1", 1},
		"NUL in key":        {"order\x00", 1},
		"C1 control in key": {"order\u0085", 1},
		"key is no UTF-8":   {"order\xff", 1},
	}
}

type bad struct {
	key   string
	fence uint64
}

func TestNewSQLRefusesBadInput(t *testing.T) {
	t.Parallel()
	refuses := func(dialect fence.Dialect, opts ...fence.SQLOption) {
		t.Helper()
		if _, err := fence.NewSQL(dialect, opts...); !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("%q: %v", dialect, err)
		}
	}
	refuses("")
	refuses("oracle")
	refuses(fence.Postgres, nil)
	for _, table := range []string{
		"", `a"b`, "a`b", "a; DROP TABLE orders", "a b", "a\n", "1a", "a.b.c", ".b", "a.", "ä", strings.Repeat("x", 64),
	} {
		refuses(fence.SQLite, fence.WithTable(table))
	}
}

var errDown = errors.New("down")

// down is a database that cannot be reached.
type down struct{}

func (down) Connect(context.Context) (driver.Conn, error) { return nil, errDown }
func (down) Driver() driver.Driver                        { return nil }

// These databases and transactions cannot be used.
func TestBadInputIsRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, dialect := range []fence.Dialect{fence.Postgres, fence.MySQL, fence.SQLite} {
		guard, err := fence.NewSQL(dialect)
		if err != nil {
			t.Fatal(err)
		}
		fn := func(*sql.Tx) error {
			t.Error("fn runs")
			return nil
		}
		errs := map[string]error{
			"nil db": guard.Do(ctx, nil, "order:1", 1, fn),
			"nil fn": guard.Do(ctx, new(sql.DB), "order:1", 1, nil),
			"nil tx": guard.Advance(ctx, nil, "order:1", 1),
		}
		var memory fence.Memory
		errs["nil fn of memory"] = memory.Do("order:1", 1, nil)
		for what, in := range badInput() {
			errs[what+" (memory)"] = memory.Do(in.key, in.fence, func() error { return fn(nil) })
			errs[what+" (Do)"] = guard.Do(ctx, new(sql.DB), in.key, in.fence, fn)
			errs[what+" (Advance)"] = guard.Advance(ctx, new(sql.Tx), in.key, in.fence)
		}
		for what, err := range errs {
			if !errors.Is(err, fence.ErrInvalid) {
				t.Errorf("%s, %s: %v", dialect, what, err)
			}
		}
	}
	guard, err := fence.NewSQL(fence.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	if err := guard.Do(ctx, sql.OpenDB(down{}), "order:1", 1, func(*sql.Tx) error { return nil }); !errors.Is(err, errDown) {
		t.Errorf("no database: %v", err)
	}
	if err := fence.Wrote(nil, nil); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("nil result: %v", err)
	}
	if err := fence.Wrote(driver.ResultNoRows, nil); err == nil || errors.Is(err, fence.ErrStale) { // of a driver that cannot tell
		t.Errorf("no number of rows: %v", err)
	}
}
