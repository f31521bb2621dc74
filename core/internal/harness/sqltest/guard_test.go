package sqltest

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/fence"
)

// proofs are what holds in every database.
var proofs = []func(b *bench){
	theLateWriteIsRefused,
	aRefusedOrFailedWriteLeavesNothing,
	keysAreApartIfOneByteIs,
	fencesUpToTheLargestAreKept,
	aWriterWaitsForTheOneUnderWay,
	noIsolationLevelLetsALateWriteIn,
	writersInAHurryEndInOrder,
	aColumnForTheFenceNeedsNoGuard,
	answersAreKept,
}

func proveAll(t *testing.T, db database) {
	t.Helper()
	for _, proof := range proofs {
		name := runtime.FuncForPC(reflect.ValueOf(proof).Pointer()).Name()
		t.Run(name[strings.LastIndexByte(name, '.')+1:], func(t *testing.T) {
			proof(newBench(t, db))
		})
	}
}

const key = "order:1"

func asStale(err error) (fence.StaleError, bool) {
	stale, ok := errors.AsType[*fence.StaleError](err)
	if !ok || !errors.Is(err, fence.ErrStale) {
		return fence.StaleError{}, false
	}
	return *stale, true
}

// do writes as a holder with that fence does.
func (b *bench) do(key string, f uint64, value int64) error {
	return b.guard.Do(b.Context(), b.DB, key, f, func(tx *sql.Tx) error { return b.write(tx, value) })
}

func theLateWriteIsRefused(b *bench) {
	b.ok(b.do(key, 10, 1))
	b.ok(b.do(key, 12, 2))
	b.exec(b.guard.Schema()) // once more
	b.stale(b.do(key, 11, 3), key, 11, 12)
	b.stale(b.do(key, 1, 3), key, 1, 12)
	b.has(2)
	b.ok(b.do(key, 13, 4))
	b.has(4)
	tx := b.begin(nil)
	for range 3 { // a holder may write twice
		b.ok(b.guard.Advance(b.Context(), tx, key, 13))
	}
	b.ok(tx.Commit())
}

func aRefusedOrFailedWriteLeavesNothing(b *bench) {
	b.ok(b.do(key, 10, 1))
	failed := errors.New("no")
	err := b.guard.Do(b.Context(), b.DB, key, 12, func(tx *sql.Tx) error {
		b.ok(b.write(tx, 2))
		return failed
	})
	if err != failed { //nolint:errorlint // as it is
		b.Errorf("%v; want the error as it is", err)
	}
	b.has(1)
	func() {
		defer func() { _ = recover() }()
		_ = b.guard.Do(b.Context(), b.DB, key, 12, func(*sql.Tx) error { panic("work") })
		b.Error("the panic does not pass through")
	}()
	b.ok(b.do(key, 11, 3)) // what was rolled back was not seen, and nothing is locked

	tx := b.begin(nil)
	b.ok(b.write(tx, 4)) // before it shows its fence
	b.stale(b.guard.Advance(b.Context(), tx, key, 10), key, 10, 11)
	b.ok(tx.Rollback())
	b.has(3)
}

func keysAreApartIfOneByteIs(b *bench) {
	for i, key := range []string{
		"order:1", "ORDER:1", "order:1 ", " order:1", "order:01", "Örder:1", "o\u0308rder:1", "ö", "o", "ß", "ss", "%", "_", "'",
		"\\", `"`, "日本語", "🔒", strings.Repeat("x", 200), strings.Repeat("x", 199) + "y", strings.Repeat("ö", 100),
	} {
		f := uint64(1000 - i)
		b.ok(b.do(key, f, 1))
		b.stale(b.do(key, f-1, 1), key, f-1, f)
	}
}

func fencesUpToTheLargestAreKept(b *bench) {
	for _, f := range []uint64{1, 1<<31 + 1, 1<<32 + 1, 1_795_000_000_000_001, fence.Max - 1, fence.Max} {
		b.ok(b.do(key, f, 1))
		b.ok(b.do(key, f, 1))
		if f > 1 {
			b.stale(b.do(key, f-1, 1), key, f-1, f)
		}
	}
}

// numbered writes the placeholders as the dialect does.
func (b *bench) numbered(statement string) string {
	if b.dialect != fence.Postgres {
		return statement
	}
	for n := 1; strings.Contains(statement, "?"); n++ {
		statement = strings.Replace(statement, "?", fmt.Sprintf("$%d", n), 1)
	}
	return statement
}

func aColumnForTheFenceNeedsNoGuard(b *bench) {
	update := func(value int, f uint64) error {
		result, err := b.ExecContext(b.Context(), b.numbered("UPDATE "+b.data+" SET value = ?, fence = ? WHERE id = 1 AND fence <= ?"),
			value, fence.Number(f), fence.Number(f))
		return fence.Wrote(result, err)
	}
	b.ok(update(1, 10))
	b.ok(update(2, 10))
	b.ok(update(3, 12))
	if err := update(4, 11); !errors.Is(err, fence.ErrStale) {
		b.Errorf("%v; want %v", err, fence.ErrStale)
	}
	b.has(3)
	if err := update(5, fence.Max+1); !errors.Is(err, fence.ErrInvalid) {
		b.Errorf("a fence that is none: %v", err)
	}
	result, err := b.ExecContext(b.Context(), "UPDATE no_such_table SET value = 1")
	if err == nil || fence.Wrote(result, err) != err { //nolint:errorlint // as it is
		b.Errorf("%v; want the database's error", err)
	}
}
