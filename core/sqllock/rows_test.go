package sqllock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/sqllock"
)

func TestClaimsDoNotWaitForOthersWhoseRowsAreLocked(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t).Addr(), "")
	table := d.tableNamed(t)
	s := d.store(t, table)
	claim := func(name string) driver.Claim {
		return driver.Claim{Name: name, Token: "token-" + name, TTL: time.Minute}
	}
	for i := range inFlight {
		c := claim(fmt.Sprint("locked-", i))
		granted(t, s, c)
	}
	tx := begin(t, d.open(t))
	_, err := tx.ExecContext(t.Context(), "SELECT FROM "+table+" FOR UPDATE")
	ok(t, err)
	var wg sync.WaitGroup
	for i := range inFlight {
		wg.Go(func() { _, _ = s.Acquire(t.Context(), claim(fmt.Sprint("locked-", i))) })
	}
	var waiting int
	watch := d.open(t)
	eventually(t, "they wait for the rows", func() bool {
		ok(t, watch.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").Scan(&waiting))
		return waiting == inFlight
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for i := range 20 {
		c := claim(fmt.Sprint("free-", i))
		_, err := s.Acquire(ctx, c)
		ok(t, err)
		ok(t, s.Release(ctx, c))
	}
	ok(t, tx.Rollback())
	wg.Wait()
}

// The row of a free name has its queue, and the last fence, for a day: however long it was held.
func TestANameThatWasHeldForDaysKeepsItsRow(t *testing.T) {
	t.Parallel()
	for what, d := range map[string]database{
		"postgres": postgres(servers.Postgres(t).Addr(), ""),
		"sqlite":   sqlite(t, "&_pragma=journal_mode(WAL)"),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			table := d.tableNamed(t)
			s, db := d.store(t, table), d.open(t)
			alone := driver.Claim{Name: "alone", Token: "token-a", TTL: time.Minute}
			permit := driver.Claim{Name: "permits", Token: "token-p", TTL: time.Minute, Limit: 2}
			for _, c := range []driver.Claim{alone, permit} {
				granted(t, s, c)
			}
			waiter := driver.Claim{Name: "permits", Token: "token-w", TTL: time.Minute}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			waits(ctx, t, s, waiter)
			d.exec(t, "UPDATE "+table+" SET fence = 1")
			for _, c := range []driver.Claim{alone, permit} {
				ok(t, s.Release(t.Context(), c))
			}
			other := d.store(t, table)
			c := driver.Claim{Name: "zzz", Token: "token", TTL: time.Minute}
			granted(t, other, c)
			ok(t, other.Release(t.Context(), c)) // which looks for rows out of use
			var rows int
			ok(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&rows))
			if rows != 3 {
				t.Errorf("%d rows", rows)
			}
		})
	}
}

// A statement changes one row after the other, and who reads at READ UNCOMMITTED sees what is half done.
func TestANameIsNotFreeBeforeItsMarkerStands(t *testing.T) {
	t.Parallel()
	d := mariadb(servers.MariaDB(t, "--transaction-isolation=READ-UNCOMMITTED").Addr(), "")
	table := d.tableNamed(t)
	s, other, watch := d.store(t, table), d.store(t, table), d.open(t)
	c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute, Dedup: time.Minute, Scope: "scope"}
	granted(t, s, c)
	waiting := func() (n int) {
		var what string
		ok(t, watch.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").Scan(&what, &n))
		return n
	}
	tx := begin(t, d.open(t))
	_, err := tx.ExecContext(t.Context(), "INSERT INTO "+table+" (name, token, label, fence, expires) VALUES ('name scope', '', '', 0, 0)")
	ok(t, err)
	released, asked := make(chan error, 1), make(chan error, 1)
	go func() { released <- s.Release(t.Context(), c) }()
	eventually(t, "the release waits for the row of its marker", func() bool { return waiting() == 1 })
	go func() {
		c := c
		c.Token = "another"
		_, err := other.Acquire(t.Context(), c)
		asked <- err
	}()
	eventually(t, "the claim is refused, or waits, too", func() bool { return len(asked) > 0 || waiting() == 2 })
	ok(t, tx.Rollback())
	ok(t, <-released)
	if err := <-asked; err == nil {
		t.Error("work that is done is granted again")
	}
}

// MySQL cuts off what is too long for a column, unless its mode is strict. Labels take no room that a holder needs.
func TestMoreHoldersThanARowHasRoomForAreRefused(t *testing.T) {
	t.Parallel()
	d := mariadb(servers.MariaDB(t).Addr(), "?sql_mode=%27%27")
	s := d.store(t, d.tableNamed(t))
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		c := driver.Claim{Name: "name", Token: fmt.Sprintf("%064d", n), TTL: time.Minute, Limit: driver.Readers, Label: strings.Repeat("l", driver.MaxLabel)}
		_, err = s.Acquire(t.Context(), c)
	}
	if n < 200 || !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "holders") {
		t.Errorf("after %d: %v", n, err)
	}
	info, err := s.Inspect(t.Context(), "name")
	if err != nil || info.Kind != inspect.HoldShared {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestAnotherWriterIsWaitedForWithoutABusyTimeout(t *testing.T) {
	t.Parallel()
	d := sqlite(t, "&_pragma=journal_mode(WAL)")
	d.source = strings.ReplaceAll(d.source, "busy_timeout(20000)", "busy_timeout(0)")
	table := d.tableNamed(t)
	s := d.store(t, table)
	tx := begin(t, d.open(t))
	_, err := tx.ExecContext(t.Context(), "DELETE FROM "+table)
	ok(t, err)
	c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Acquire(ctx, c); err == nil || ctx.Err() == nil {
		t.Errorf("beside another writer: %v", err)
	}
	got := make(chan error)
	go func() {
		_, err := s.Acquire(t.Context(), c)
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	ok(t, tx.Commit())
	ok(t, <-got)
	ok(t, s.Release(t.Context(), c))
}

func TestSharedLeasesAreRenewedTogether(t *testing.T) {
	t.Parallel()
	srv := servers.Postgres(t, "-c", "log_statement=all")
	d := postgres(srv.Addr(), "")
	table := d.tableNamed(t)
	s := d.store(t, table)
	sent := 0 // statements, without those by which pgx asks whether a connection is still there
	sends := func(n int, what string) {
		t.Helper()
		before := sent
		if sent = strings.Count(srv.Log(), "LOG:  execute "); sent-before != n {
			t.Errorf("%d statements for %s", sent-before, what)
		}
	}
	var claims []driver.Claim
	for i := range 128 {
		c := driver.Claim{Name: fmt.Sprint("name-", i/4), Token: fmt.Sprint("token-", i), TTL: 20 * time.Second, Limit: driver.Readers}
		if i >= 64 {
			c.Limit = 4
		}
		granted(t, s, c)
		if c.TTL = time.Minute; i == 0 {
			sent = strings.Count(srv.Log(), "LOG:  execute ")
		} else {
			sends(2, fmt.Sprint("the acquire of ", i))
		}
		claims = append(claims, c)
	}
	for i, err := range s.Renew(t.Context(), claims) {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	sends(1, "the renewal of all")
	for info, err := range s.Leases(t.Context(), "") {
		ok(t, err)
		for _, h := range info.Holders {
			if h.Remaining < 30*time.Second {
				t.Errorf("%+v", info)
			}
		}
	}
	// One that is over, and a row that cannot be read, cost the others nothing.
	lost := driver.Claim{Name: "name-0", Token: "nobody's", TTL: time.Minute, Limit: driver.Readers}
	d.exec(t, "UPDATE "+table+" SET state = '{' WHERE name = 'name-1'")
	for i, err := range s.Renew(t.Context(), append([]driver.Claim{lost}, claims...)) {
		switch {
		case i == 0 && !errors.Is(err, driver.ErrNotOwner),
			i > 4 && i <= 8 && err == nil,
			i > 8 && err != nil:
			t.Errorf("%d: %v", i, err)
		}
	}
}

// A row must not look as it did to who has read it before the marker was there, even if its fence is ahead of the clock.
func TestAMarkerChangesTheRowOfAName(t *testing.T) {
	t.Parallel()
	d := sqlite(t, "")
	name := d.tableNamed(t)
	db := d.open(t)
	_, err := db.ExecContext(t.Context(), "INSERT INTO "+name+" (name, token, label, fence, expires) VALUES ('name', '', '', ?, 0)", time.Now().Add(time.Hour).UnixMicro())
	ok(t, err)
	fence := func() (f int64) {
		ok(t, db.QueryRowContext(t.Context(), "SELECT fence FROM "+name+" WHERE name = 'name'").Scan(&f))
		return f
	}
	before := fence()
	s := sqllock.New(db, d.dialect, sqllock.WithTable(name))
	c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute, Limit: 2, Scope: "scope", Dedup: time.Hour}
	granted(t, s, c)
	ok(t, s.Release(t.Context(), c))
	if after := fence(); after <= before {
		t.Errorf("fence %d after %d", after, before)
	}
}
