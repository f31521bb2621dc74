package sqllock_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"os"
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
	"github.com/holdfast-go/holdfast/core/sqllock/pgxlisten"
)

// A server that starts with this file applies what a primary sends, of which there is none.
func TestAHotStandbyIsUnavailableAndSaysSo(t *testing.T) {
	t.Parallel()
	srv := servers.Postgres(t)
	d := postgres(srv.Addr(), "")
	table := d.tableNamed(t)
	held := driver.Claim{Name: "held", Token: "token-held", TTL: time.Hour}
	_, err := d.store(t, table).Acquire(t.Context(), held)
	ok(t, err)
	var dir string
	ok(t, d.open(t).QueryRowContext(t.Context(), "SHOW data_directory").Scan(&dir))
	srv.Stop()
	ok(t, os.WriteFile(filepath.Join(dir, "standby.signal"), nil, 0o644))
	srv.Restart()
	s := d.listening().store(t, table)
	wantNotSent(t, s)
	if info, err := s.Inspect(t.Context(), "held"); err != nil || !info.Held {
		t.Errorf("%+v, %v", info, err)
	}
	locks := backendtest.Locker(t, s, time.Minute)
	for _, name := range []string{"held", "free"} {
		_, err := locks.Acquire(t.Context(), name, core.WithWait(100*time.Millisecond))
		is(t, err, core.ErrUnavailable)
		if !driver.Explain(err).Nobody || !strings.Contains(err.Error(), "standby") {
			t.Errorf("%s: %v", name, err)
		}
	}
	grants := fake(func(context.Context, string) ([][]sqldriver.Value, error) { return row(""), nil })
	readsThere(t, split{grants, d.connector(t)}, driver.Claim{Name: "free", Token: "token", TTL: time.Minute, Limit: driver.Readers}, d, table)
}

// split is a proxy that sends what only reads to another server, or a pool whose connections reach any server.
type split struct{ primary, standby sqldriver.Connector }

func (split) Driver() sqldriver.Driver { return nil }

func (s split) Connect(ctx context.Context) (sqldriver.Conn, error) {
	primary, err := s.primary.Connect(ctx)
	if err != nil {
		return nil, err
	}
	standby, err := s.standby.Connect(ctx)
	return splitConn{primary, standby}, err
}

type splitConn struct {
	sqldriver.Conn

	standby sqldriver.Conn
}

func (c splitConn) Prepare(text string) (sqldriver.Stmt, error) {
	if strings.HasPrefix(text, "SELECT") {
		return c.standby.Prepare(text)
	}
	return c.Conn.Prepare(text)
}

// A standby has another clock. Here it is an hour ahead, and the server that is asked for what it reads takes no writes,
// except those of root.
func TestWhatAStandbyReadsDecidesNothing(t *testing.T) {
	t.Parallel()
	d := mariadb(servers.MariaDB(t, "--read-only").Addr(), "")
	table := d.tableNamed(t)
	ahead := d
	ahead.source += fmt.Sprintf("?timestamp=%d", time.Now().Add(time.Hour).Unix())
	c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute}
	_, err := d.store(t, table).Acquire(t.Context(), c)
	ok(t, err)
	c.Token = "another"
	readsThere(t, split{d.connector(t), ahead.connector(t)}, c, d, table)
}

// readsThere fails the test unless a claim is told that a standby has answered.
func readsThere(t *testing.T, to split, c driver.Claim, d database, table string) {
	t.Helper()
	db := sql.OpenDB(to)
	defer func() { _ = db.Close() }()
	_, err := sqllock.New(db, d.dialect, sqllock.WithTable(table)).Acquire(t.Context(), c)
	if !driver.Explain(err).Nobody || !errors.Is(err, driver.ErrNotSent) || !strings.Contains(driver.Reason(err), "connect to the primary") {
		t.Errorf("%v, because %q", err, driver.Reason(err))
	}
}

func TestATableThatIsMissingOrLacksColumnsIsToldAtOnce(t *testing.T) {
	t.Parallel()
	for what, d := range map[string]database{
		"postgres": postgres(servers.Postgres(t).Addr(), ""),
		"mariadb":  mariadb(servers.MariaDB(t).Addr(), ""),
		"sqlite":   sqlite(t, "&_pragma=journal_mode(WAL)"),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d.exec(t, "CREATE TABLE narrow (name VARCHAR(200) PRIMARY KEY, token VARCHAR(64), label VARCHAR(200), fence BIGINT, expires BIGINT)")
			wantNotSent(t, d.store(t, "nowhere"))
			for table, words := range map[string]string{"nowhere": "run the statement of sqllock.Schema", "narrow": "lacks a column"} {
				_, err := locker(t, d.open(t), d.dialect, sqllock.WithTable(table)).Acquire(t.Context(), "name", core.WithWait(time.Hour))
				if !errors.Is(err, core.ErrUnavailable) || !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), words) {
					t.Errorf("%s: %v", table, err)
				}
			}
		})
	}
}

// The four rights are enough for everything but to make the table, and less is told.
func TestAUserOfTheTableNeedsFourRights(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t).Addr(), "")
	table := d.tableNamed(t)
	d.exec(t, "CREATE ROLE app LOGIN")
	d.exec(t, "CREATE SCHEMA own AUTHORIZATION app")
	app := d
	app.source = strings.Replace(d.source, "//postgres@", "//app@", 1)
	for _, path := range []string{"", "&search_path=own,public"} { // who finds the table needs no right to make it, and makes no other
		app.source += path
		app.exec(t, schema(t, d.dialect, sqllock.WithTable(table)))
	}
	var tables int
	ok(t, d.open(t).QueryRowContext(t.Context(), "SELECT count(*) FROM pg_class WHERE relname = $1", table).Scan(&tables))
	if tables != 1 {
		t.Errorf("%d tables of that name", tables)
	}
	s := app.store(t, table)
	_, err := s.Acquire(t.Context(), driver.Claim{Name: "name", Token: "token", TTL: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "SELECT, INSERT, UPDATE and DELETE") {
		t.Errorf("without rights: %v", err)
	}
	d.exec(t, "GRANT SELECT, INSERT, UPDATE, DELETE ON "+table+" TO app")
	opts := []sqllock.Option{sqllock.WithTable(table), sqllock.WithListen(pgxlisten.Connect(app.source))}
	a, b := locker(t, app.open(t), app.dialect, opts...), locker(t, app.open(t), app.dialect, opts...)
	for i := range 20 {
		name := fmt.Sprint("name-", i)
		x := acquire(t, a, name, core.WithDedup(time.Millisecond))
		got := backendtest.Next(t, b, name)
		ok(t, x.Complete(t.Context()))
		ok(t, <-got)
		r := acquire(t, a, "read", core.WithShared())
		ok(t, r.Release(t.Context()))
		_, err = s.Inspect(t.Context(), name)
		ok(t, err)
	}
}

// After a planned switch-over the connections to the old primary live on, and only new ones reach the new one. Here sessions
// that began before the switch stay read only.
func TestConnectionsToWhatWasThePrimaryAreNotUsedForever(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t).Addr(), "")
	table := d.tableNamed(t)
	d.exec(t, "CREATE ROLE app LOGIN")
	d.exec(t, "GRANT SELECT, INSERT, UPDATE, DELETE ON "+table+" TO app")
	d.exec(t, "ALTER ROLE app SET default_transaction_read_only = on")
	app := d
	app.source = strings.Replace(d.source, "//postgres@", "//app@", 1)
	locks := locker(t, app.open(t), d.dialect, sqllock.WithTable(table)) // which has begun a session
	_, err := locks.TryAcquire(t.Context(), "name")
	is(t, err, core.ErrUnavailable)
	d.exec(t, "ALTER ROLE app SET default_transaction_read_only = off")
	x, err := locks.TryAcquire(t.Context(), "name")
	ok(t, err)
	ok(t, x.Release(t.Context()))
}

// Processes whose search paths find different tables must not both get the lock.
func TestASearchPathGivesNoSecondHolder(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t).Addr(), "")
	d.exec(t, schema(t, d.dialect))
	d.exec(t, "CREATE SCHEMA other")
	d.exec(t, "CREATE TABLE other.holdfast_locks (LIKE public.holdfast_locks INCLUDING ALL)")
	elsewhere := d
	elsewhere.source += "&search_path=other,public"
	c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute}
	_, err := sqllock.New(d.open(t), d.dialect).Acquire(t.Context(), c)
	ok(t, err)
	c.Token = "another"
	_, err = sqllock.New(elsewhere.open(t), d.dialect).Acquire(t.Context(), c)
	backendtest.IsHeld(t, err)
}

// Who may create functions and operators in a schema of the search path must not have them run as the user of the locks. Here
// that schema comes even before PostgreSQL's own.
func TestNobodysFunctionRunsAsTheUserOfTheLocks(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t).Addr(), "")
	table := d.tableNamed(t)
	for _, f := range []string{
		"clock_timestamp() RETURNS timestamptz", "statement_timestamp() RETURNS timestamptz", "length(text) RETURNS int",
		"pg_notify(text, text) RETURNS void", "split_part(text, text, int) RETURNS text", "concat(text, text) RETURNS text",
		"json_to_recordset(json) RETURNS SETOF record", "jsonb_array_elements(jsonb) RETURNS SETOF jsonb", "to_jsonb(bigint) RETURNS jsonb",
		"jsonb_set(jsonb, text[], jsonb) RETURNS jsonb", "jsonb_agg(jsonb) RETURNS jsonb", "bool_or(boolean) RETURNS boolean",
		"max(bigint) RETURNS bigint", "pg_is_in_recovery() RETURNS boolean", "version() RETURNS text",
		"set_config(text, text, boolean) RETURNS text",
		"trap_json(jsonb, jsonb) RETURNS jsonb", "trap_text(jsonb, jsonb) RETURNS text", "trap_times(numeric, int) RETURNS numeric",
	} {
		d.exec(t, "CREATE FUNCTION public."+f+" LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'trapped'; END $$")
	}
	for operator, function := range map[string]string{"->": "trap_json", "->>": "trap_text"} {
		d.exec(t, fmt.Sprintf("CREATE OPERATOR public.%s (LEFTARG = jsonb, RIGHTARG = jsonb, FUNCTION = public.%s)", operator, function))
	}
	d.exec(t, "CREATE OPERATOR public.* (LEFTARG = numeric, RIGHTARG = int, FUNCTION = public.trap_times)")

	d.source += "&search_path=public,pg_catalog"
	db := d.open(t)
	opts := []sqllock.Option{sqllock.WithTable(table), sqllock.WithListen(pgxlisten.Connect(d.source))}
	s := sqllock.New(db, d.dialect, opts...)
	locks := backendtest.Locker(t, s, ttl)
	claims := make([]driver.Claim, 16)
	for i := range claims {
		claims[i] = driver.Claim{Name: fmt.Sprint("name-", i), Token: fmt.Sprint("token-", i), TTL: time.Minute, Limit: driver.Readers * (i % 2)}
	}
	together := func(do func(c driver.Claim) error) {
		t.Helper()
		var all sync.WaitGroup
		for _, c := range claims {
			all.Go(func() {
				if err := do(c); err != nil {
					t.Errorf("%s: %v", c.Name, err)
				}
			})
		}
		all.Wait()
	}
	for range 3 { // many at a time share a statement
		together(func(c driver.Claim) error { _, err := s.Acquire(t.Context(), c); return err })
		for _, err := range s.Renew(t.Context(), claims) {
			ok(t, err)
		}
		together(func(c driver.Claim) error { return s.Release(t.Context(), c) })
	}
	x := acquire(t, locks, "queued", core.WithDedup(time.Millisecond))
	got := backendtest.Next(t, locker(t, db, d.dialect, opts...), "queued")
	time.Sleep(100 * time.Millisecond)
	tx := begin(t, db)
	ok(t, sqllock.HeldInTx(t.Context(), tx, "queued", x.Fence(), sqllock.WithTable(table)))
	ok(t, tx.Commit())
	ok(t, x.Complete(t.Context()))
	ok(t, <-got)
	_, err := s.Inspect(t.Context(), "queued")
	ok(t, err)
}

// Whatever is wrong, somebody who is paged at night reads what to do.
func TestAConnectionThatCannotBeHadSaysWhatToDo(t *testing.T) {
	t.Parallel()
	pg, my := postgres(servers.Postgres(t).Addr(), ""), mariadb(servers.MariaDB(t).Addr(), "")
	pg.exec(t, "CREATE ROLE crowd LOGIN CONNECTION LIMIT 0")
	as := func(d database, former, latter string) database {
		d.source = strings.Replace(d.source, former, latter, 1)
		return d
	}
	spoken := func(d database, dialect sqllock.Dialect) database {
		d.dialect = dialect
		return d
	}
	for what, c := range map[string]struct {
		database
		want string
	}{
		"a user that is not known":     {as(pg, "//postgres@", "//nobody:hunter2@"), "check user, password"},
		"the same, on MariaDB":         {as(my, "root@", "nobody:hunter2@"), "check user, password"},
		"TLS":                          {as(pg, "sslmode=disable", "sslmode=require"), "the server has none"},
		"the same, on MariaDB ":        {as(my, "/test", "/test?tls=skip-verify"), "the server has none"},
		"too many connections":         {as(pg, "//postgres@", "//crowd@"), "SetMaxOpenConns"},
		"another server":               {as(pg, pg.addr, my.addr), "check host and port"},
		"MySQL's dialect":              {spoken(pg, sqllock.MySQL), "dialect of another database"},
		"SQLite's dialect":             {spoken(pg, sqllock.SQLite), "dialect of another database"},
		"PostgreSQL's dialect":         {spoken(my, sqllock.Postgres), "dialect of another database"},
		"SQLite's dialect, on MariaDB": {spoken(my, sqllock.SQLite), "dialect of another database"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			db, err := sql.Open(c.driver, c.source)
			ok(t, err)
			t.Cleanup(func() { _ = db.Close() })
			backendtest.Tells(t, locker(t, db, c.dialect), c.want)
		})
	}
}
