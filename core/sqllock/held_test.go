package sqllock_test

import (
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/sqllock"
)

func TestOnlyWhatIsHeldCommits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		db := d.open(t)
		s := sqllock.New(db, d.dialect, table)
		held := func(name string, f uint64) error {
			t.Helper()
			tx, err := db.BeginTx(t.Context(), nil)
			ok(t, err)
			defer func() { _ = tx.Rollback() }()
			return sqllock.HeldInTx(t.Context(), tx, name, f, table)
		}
		refused := func(what, name string, f uint64) {
			t.Helper()
			if err := held(name, f); !errors.Is(err, fence.ErrStale) {
				t.Errorf("%s: %v", what, err)
			}
		}
		c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute}
		refused("a name that nobody has taken", "name", 7)
		g, err := s.Acquire(t.Context(), c)
		ok(t, err)
		ok(t, held("name", g.Fence))
		refused("a smaller fence", "name", g.Fence-1)
		refused("a larger fence", "name", g.Fence+1)
		kept := c
		kept.Keep = time.Minute
		ok(t, s.Release(t.Context(), kept))
		refused("a name that is kept", "name", g.Fence)

		many := driver.Claim{Name: "many", Token: "token", TTL: time.Minute, Fences: 5}
		g, err = s.Acquire(t.Context(), many)
		ok(t, err)
		for i := range uint64(5) {
			ok(t, held("many", g.Fence+i))
		}
		ok(t, s.Renew(t.Context(), []driver.Claim{many})[0])
		ok(t, held("many", g.Fence+2))
		ok(t, s.Release(t.Context(), many))
		refused("a name that is free", "many", g.Fence+2)
		last := g.Fence + 4

		permit := driver.Claim{Name: "many", Token: "permit", TTL: time.Minute, Limit: 2}
		_, err = s.Acquire(t.Context(), permit)
		ok(t, err)
		refused("beside a permit", "many", last)
		ok(t, s.Release(t.Context(), permit))

		reader := driver.Claim{Name: "read", Token: "reader", TTL: time.Minute, Limit: driver.Readers}
		g, err = s.Acquire(t.Context(), reader)
		ok(t, err)
		ok(t, held("read", g.Fence))

		short := driver.Claim{Name: "short", Token: "token", TTL: 20 * time.Millisecond}
		g, err = s.Acquire(t.Context(), short)
		ok(t, err)
		eventually(t, "its TTL is over", func() bool { return s.Renew(t.Context(), []driver.Claim{{Name: "short", Token: "token"}})[0] != nil })
		refused("a lease whose TTL is over", "short", g.Fence)
		for what, err := range map[string]error{"no fence": held("name", 0), "no name": held("", 7)} {
			if err == nil || errors.Is(err, fence.ErrStale) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// The turns of one grant share its fences. A lease that has ended is refused once a later turn has checked, whatever was
// written to the row in between.
func TestAnEarlierTurnDoesNotCommitAfterALaterOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		name, db := d.tableNamed(t), d.open(t)
		table := sqllock.WithTable(name)
		s, other := sqllock.New(db, d.dialect, table), sqllock.New(d.open(t), d.dialect, table)
		held := func(f uint64, end func(*sql.Tx) error) error {
			t.Helper()
			tx := begin(t, db)
			defer func() { _ = tx.Rollback() }()
			if err := sqllock.HeldInTx(t.Context(), tx, "name", f, table); err != nil {
				return err
			}
			return end(tx)
		}
		stale := func(what string, f uint64) {
			t.Helper()
			if err := held(f, (*sql.Tx).Commit); !errors.Is(err, fence.ErrStale) {
				t.Errorf("%s: %v", what, err)
			}
		}
		c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute, Fences: driver.MaxFences}
		g, err := s.Acquire(t.Context(), c)
		ok(t, err)
		ok(t, held(g.Fence+1, (*sql.Tx).Rollback)) // nothing was written
		ok(t, held(g.Fence, (*sql.Tx).Commit))
		ok(t, held(g.Fence+1, (*sql.Tx).Commit))
		ok(t, held(g.Fence+1, (*sql.Tx).Commit)) // a turn has several transactions
		stale("after the turn that follows", g.Fence)
		ok(t, s.Renew(t.Context(), []driver.Claim{c})[0])
		stale("after a renewal", g.Fence)

		// A waiter reads the row, and writes its place there once the check has been committed.
		ok(t, held(g.Fence+5, func(tx *sql.Tx) error {
			next := driver.Claim{Name: "name", Token: "next", TTL: time.Minute}
			return other.Queue(t.Context(), next, sync.OnceFunc(func() { ok(t, tx.Commit()) }))
		}))
		var stands bool
		ok(t, db.QueryRowContext(t.Context(), "SELECT state <> '' FROM "+name+" WHERE name = 'name'").Scan(&stands))
		if !stands {
			t.Error("no waiter stands in the queue")
		}
		stale("after a waiter's place", g.Fence+4)
		ok(t, held(g.Fence+5, (*sql.Tx).Commit))
		ok(t, held(g.Fence+uint64(g.Fences)-1, (*sql.Tx).Commit))
		stale("a fence that was not granted", g.Fence+uint64(g.Fences))
	})
}

// Between the check and the commit nobody else gets the name, even if the TTL ends there.
func TestNobodyTakesTheNameBeforeTheWriteIsCommitted(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, d database) {
		table, db := d.table(t), d.open(t)
		s := sqllock.New(db, d.dialect, table)
		c := driver.Claim{Name: "name", Token: "token", TTL: 2 * time.Second}
		g, err := s.Acquire(t.Context(), c)
		ok(t, err)
		tx := begin(t, db)
		ok(t, sqllock.HeldInTx(t.Context(), tx, "name", g.Fence, table))
		got := backendtest.Next(t, locker(t, d.open(t), d.dialect, table), "name", core.WithTTL(time.Minute))
		select {
		case err := <-got:
			t.Fatalf("before the transaction ended: %v", err)
		case <-time.After(3 * time.Second):
		}
		ok(t, tx.Commit())
		ok(t, <-got)
	})
}

func TestPgxsTransactionsAreCheckedToo(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t).Addr(), "")
	d.exec(t, schema(t, d.dialect))
	pool, err := pgxpool.New(t.Context(), d.source)
	ok(t, err)
	t.Cleanup(pool.Close)
	locks := locker(t, d.open(t), d.dialect)
	x := acquire(t, locks, "name", core.WithTTL(time.Minute))
	inTx := func(f func(tx pgx.Tx) error) error {
		tx, err := pool.Begin(t.Context())
		ok(t, err)
		defer func() { _ = tx.Rollback(t.Context()) }()
		return f(tx)
	}
	ok(t, inTx(func(tx pgx.Tx) error { return sqllock.InPgx(t.Context(), tx, "name") }))
	ok(t, inTx(func(tx pgx.Tx) error { return sqllock.HeldInPgx(t.Context(), tx, "name", x.Fence()) }))
	ok(t, x.Release(t.Context()))
	if err := inTx(func(tx pgx.Tx) error { return sqllock.HeldInPgx(t.Context(), tx, "name", x.Fence()) }); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a lease that is over: %v", err)
	}
	if err := inTx(func(tx pgx.Tx) error { return sqllock.InPgx(t.Context(), tx, "") }); err == nil {
		t.Error("no name")
	}
	var none *sql.Tx
	if sqllock.HeldInTx(t.Context(), none, "name", 7) == nil || sqllock.HeldInPgx[pgxTag](t.Context(), nil, "name", 7) == nil {
		t.Error("no transaction")
	}
}

type pgxTag struct{}

func (pgxTag) RowsAffected() int64 { return 0 }
