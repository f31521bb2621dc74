package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/sqllock"
)

// each runs the test on every database.
func each(t *testing.T, test func(t *testing.T, d database)) {
	t.Helper()
	eachServer(t, test)
	for _, mode := range []string{"WAL", "DELETE"} {
		t.Run("sqlite "+mode, func(t *testing.T) {
			t.Parallel()
			test(t, sqlite(t, "&_pragma=journal_mode("+mode+")"))
		})
	}
}

// eachServer runs the test on every database that is a server.
func eachServer(t *testing.T, test func(t *testing.T, d database)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, postgres(servers.Postgres(t).Addr(), ""))
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		test(t, mariadb(servers.MariaDB(t).Addr(), "?sql_mode=%27ORACLE%27")) // which assigns all columns at once
	})
}

func TestWhatCannotWorkComesOutOfNew(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "test.db"))
	ok(t, err)
	defer func() { _ = db.Close() }()
	backendtest.RefusedByNew(t, map[string]driver.Driver{
		"sqllock: nil *sql.DB":              sqllock.New(nil, sqllock.Postgres),
		`sqllock: unknown dialect "oracle"`: sqllock.New(db, "oracle"),
		`sqllock: unknown dialect ""`:       sqllock.New(db, ""),
		`sqllock: WithTable("a\"b")`:        sqllock.New(db, sqllock.SQLite, sqllock.WithTable(`a"b`)),
		`sqllock: WithTable("")`:            sqllock.New(db, sqllock.SQLite, sqllock.WithTable("")),
		`sqllock: WithTable("a.b.c")`:       sqllock.New(db, sqllock.SQLite, sqllock.WithTable("a.b.c")),
		`sqllock: WithTable("xxxxx`:         sqllock.New(db, sqllock.SQLite, sqllock.WithTable(strings.Repeat("x", 64))),
		"sqllock: nil option":               sqllock.New(db, sqllock.SQLite, nil),
	})
	_, err = core.New(sqllock.New(db, sqllock.SQLite, sqllock.WithTable("main.Locks_2")))
	ok(t, err)
	for _, d := range []sqllock.Dialect{"", "oracle"} {
		if _, err := sqllock.Schema(d); err == nil {
			t.Errorf("dialect %q has a schema", d)
		}
	}
	if _, err := sqllock.Schema(sqllock.MySQL, sqllock.WithTable("a b")); err == nil {
		t.Error("a table with a space has a schema")
	}
}

func TestTheSchemaIsMadeOnceByManyAtATime(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		db := d.open(t)
		for n := range 20 {
			text := schema(t, d.dialect, sqllock.WithTable(fmt.Sprintf("at_once_%d", n)))
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					if _, err := db.ExecContext(t.Context(), text); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
	})
}

// granted is what a claim is granted, at once.
func granted(t testing.TB, s *sqllock.Store, c driver.Claim) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), c)
	ok(t, err)
	return g
}

// wantNotSent fails the test unless every call says that the server has not executed it.
func wantNotSent(t *testing.T, s *sqllock.Store) {
	t.Helper()
	c := driver.Claim{Name: "name", Token: "token", TTL: ttl}
	_, err := s.Acquire(t.Context(), c)
	for what, err := range map[string]error{
		"acquire": err,
		"renew":   s.Renew(t.Context(), []driver.Claim{c})[0],
		"release": s.Release(t.Context(), c),
	} {
		if !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A clock that stands behind the last fence costs no order, and no fence: each is the next one.
func TestFencesCountOnWhereTheClockIsBehindThem(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		table := d.tableNamed(t)
		s := d.store(t, table)
		c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute, Fences: 256}
		granted(t, s, c)
		ok(t, s.Release(t.Context(), c))
		last := uint64(time.Now().Add(time.Hour).UnixMicro())
		d.exec(t, "UPDATE "+table+fmt.Sprintf(" SET fence = %d", last))
		for range 3 {
			g := granted(t, s, c)
			if g.Fence != last+1 || g.Fences != c.Fences {
				t.Errorf("%d fences from %d on, after %d", g.Fences, g.Fence, last)
			}
			last = g.Fence + uint64(g.Fences) - 1
			ok(t, s.Release(t.Context(), c))
		}
	})
}

// By processes of which each ends soon: none has time to look at all rows, and the first ones may be in use for ever.
func TestWhatIsOutOfUseGoesAndNothingElse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		const inUse, outOfUse, most = 40, 100, 5_000
		table := d.tableNamed(t)
		db := d.open(t)
		hours := func(n int) int64 { return time.Now().Add(time.Duration(n) * time.Hour).UnixMicro() }
		tx := begin(t, db)
		insert := func(row string, fence, expires int64) {
			t.Helper()
			_, err := tx.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO %s (name, token, label, fence, expires) VALUES ('%s', '', '', %d, %d)", table, row, fence, expires))
			ok(t, err)
		}
		kept := make(map[string]bool)
		keep := func(row string, fence, expires int64) { t.Helper(); insert(row, fence, expires); kept[row] = true }
		for i := range inUse {
			keep(fmt.Sprintf("a-%03d", i), hours(0), 0)
		}
		for i := range outOfUse {
			insert(fmt.Sprintf("b-%03d", i), hours(-25), 0)
			insert(fmt.Sprintf("b-%03d pay", i), 0, hours(-25))
		}
		keep("used", hours(-23), 0)
		keep("held for long", hours(-100), hours(1))
		keep("m marker", 0, hours(1))
		keep("m just over", 0, hours(-23))
		ok(t, tx.Commit())
		rows := len(kept) + 2*outOfUse
		for process := 0; rows > len(kept) && process < most; process++ {
			s := sqllock.New(db, d.dialect, sqllock.WithTable(table))
			c := driver.Claim{Name: fmt.Sprintf("a-%03d", process%inUse), Token: "token", TTL: time.Minute}
			for range 2 {
				granted(t, s, c)
				ok(t, s.Release(t.Context(), c))
			}
			if process%20 == 0 {
				ok(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&rows))
			}
		}
		for _, row := range d.names(t, table, "name <> ''") {
			if !kept[row] {
				t.Errorf("%q is still there", row)
			}
			delete(kept, row)
		}
		for row := range kept {
			t.Errorf("%q is gone", row)
		}
	})
}

func TestARowThatSomebodyHasLockedCostsNoOtherClaimItsAnswer(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, d database) {
		table := d.tableNamed(t)
		s := d.store(t, table)
		claims := make([]driver.Claim, 5)
		for i := range claims {
			claims[i] = driver.Claim{Name: fmt.Sprint("name", i), Token: "token", TTL: time.Minute}
			granted(t, s, claims[i])
		}
		tx := begin(t, d.open(t))
		var name string
		ok(t, tx.QueryRowContext(t.Context(), "SELECT name FROM "+table+" WHERE name = 'name1' FOR UPDATE").Scan(&name))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		for i, err := range s.Renew(ctx, claims) {
			switch {
			case i == 1 && (err == nil || errors.Is(err, driver.ErrNotOwner)):
				t.Errorf("the locked one: %v", err)
			case i != 1 && err != nil:
				t.Errorf("claim %d: %v", i, err)
			}
		}
	})
}

// The connection of a session can have a time of its own in MariaDB: it stands still, years
// ago. Only a client's clock could have a lease expire, or give a fence of today.
func TestTheClocksOfClientsDoNotMatter(t *testing.T) {
	t.Parallel()
	const then = 1_600_000_000
	d := mariadb(servers.MariaDB(t).Addr(), fmt.Sprintf("?timestamp=%d", then))
	s := sqllock.New(d.open(t), d.dialect, d.table(t))
	c := driver.Claim{Name: "name", Token: "token", TTL: time.Millisecond}
	g := granted(t, s, c)
	if g.Fence != then*1_000_000 {
		t.Errorf("fence %d is not of the server's clock", g.Fence)
	}
	time.Sleep(10 * time.Millisecond)
	ok(t, s.Renew(t.Context(), []driver.Claim{c})[0])
	_, err := s.Acquire(t.Context(), driver.Claim{Name: "name", Token: "another", TTL: ttl})
	if held, ok := errors.AsType[*driver.Held](err); !ok || held.Remaining != time.Millisecond {
		t.Errorf("%v, %+v", err, held)
	}
}

func TestTheStoreDoesNotPrintItsStatements(t *testing.T) {
	t.Parallel()
	s := sqllock.New(nil, sqllock.MySQL)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(verb, s); text != "sqllock.Store(mysql)" {
			t.Errorf("%s: %s", verb, text)
		}
	}
}
