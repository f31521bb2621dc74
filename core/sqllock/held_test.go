package sqllock_test

import (
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

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
		acquire := func(c driver.Claim) (driver.Claim, uint64) {
			t.Helper()
			c.Token = "token"
			g := granted(t, s, c)
			return c, g.Fence
		}
		refused("a name that nobody has taken", "name", 7)
		c, f := acquire(driver.Claim{Name: "name", TTL: time.Minute})
		ok(t, held("name", f))
		refused("a smaller fence", "name", f-1)
		refused("a larger fence", "name", f+1)
		c.Keep = time.Minute
		ok(t, s.Release(t.Context(), c))
		refused("a name that is kept", "name", f)

		c, f = acquire(driver.Claim{Name: "many", TTL: time.Minute, Fences: 5})
		ok(t, held("many", f+4))
		ok(t, s.Release(t.Context(), c))
		refused("a name that is free", "many", f+4)
		acquire(driver.Claim{Name: "many", TTL: time.Minute, Limit: 2})
		refused("beside a permit", "many", f+4)

		_, f = acquire(driver.Claim{Name: "read", TTL: time.Minute, Limit: driver.Readers})
		ok(t, held("read", f))

		short, f := acquire(driver.Claim{Name: "short", TTL: 20 * time.Millisecond})
		short.TTL = 0
		eventually(t, "its TTL is over", func() bool { return s.Renew(t.Context(), []driver.Claim{short})[0] != nil })
		refused("a lease whose TTL is over", "short", f)
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
		g := granted(t, s, c)
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
		g := granted(t, s, c)
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
	inTx := func(name string) error {
		tx, err := pool.Begin(t.Context())
		ok(t, err)
		defer func() { _ = tx.Rollback(t.Context()) }()
		return sqllock.HeldInPgx(t.Context(), tx, name, x.Fence())
	}
	ok(t, inTx("name"))
	ok(t, x.Release(t.Context()))
	if err := inTx("name"); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a lease that is over: %v", err)
	}
	if inTx("") == nil {
		t.Error("no name")
	}
	var none *sql.Tx
	if sqllock.HeldInTx(t.Context(), none, "name", 7) == nil || sqllock.HeldInPgx[pgxTag](t.Context(), nil, "name", 7) == nil {
		t.Error("no transaction")
	}
}

type pgxTag struct{}

func (pgxTag) RowsAffected() int64 { return 0 }

func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	ok(t, err)
	t.Cleanup(func() { _ = tx.Rollback() }) // most tests have ended it
	return tx
}
