package sqllock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/sqllock"
	"github.com/holdfast-go/holdfast/core/sqllock/pgxlisten"
)

// noted is a way to listen that counts the connections that it opens and closes.
type noted struct {
	open           func(ctx context.Context) (sqllock.Listener, error)
	opened, closed atomic.Int32
}

type notedConn struct {
	sqllock.Listener
	by *noted
}

func (n *noted) Open(ctx context.Context) (sqllock.Listener, error) {
	l, err := n.open(ctx)
	if err != nil {
		return nil, err
	}
	n.opened.Add(1)
	return notedConn{l, n}, nil
}

func (c notedConn) Close(ctx context.Context) error {
	c.by.closed.Add(1)
	return c.Listener.Close(ctx)
}

// Who only asks once keeps no connection: nobody would close it.
func TestAStoreListensOnOneConnectionWhileAnybodyWaitsAndClosesIt(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t).Addr(), "")
	table := d.table(t)
	listens := &noted{open: pgxlisten.Connect(d.source)}
	locks, holder := locker(t, d.open(t), d.dialect, table, sqllock.WithListen(listens.Open)), locker(t, d.open(t), d.dialect, table)
	held := []*core.Lease{acquire(t, holder, "a"), acquire(t, holder, "b")}
	_, err := locks.TryAcquire(t.Context(), "a")
	is(t, err, core.ErrHeld)
	if n := listens.opened.Load(); n != 0 {
		t.Errorf("%d connections before anybody waits", n)
	}
	var got []<-chan error
	for _, name := range []string{"a", "b", "a", "b"} {
		got = append(got, backendtest.Next(t, locks, name))
	}
	eventually(t, "somebody listens", func() bool { return listens.opened.Load() > 0 })
	for _, x := range held {
		ok(t, x.Release(t.Context()))
	}
	for _, next := range got {
		ok(t, <-next)
	}
	ok(t, locks.Close(t.Context()))
	if n, closed := listens.opened.Load(), listens.closed.Load(); n != 1 || closed != 1 {
		t.Errorf("%d connections, %d closed", n, closed)
	}
}

func TestWhoDoesNotHearIsServedAllTheSame(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t).Addr(), "")
	for what, open := range map[string]func(ctx context.Context) (sqllock.Listener, error){
		"no connection": func(context.Context) (sqllock.Listener, error) { return nil, errors.New("refused") },
		"a pooler in transaction mode": pgxlisten.Connect(strings.Replace(d.source, d.addr, pooler(t, d.addr), 1) +
			"&default_query_exec_mode=exec"),
		"one that hangs": func(ctx context.Context) (sqllock.Listener, error) { <-ctx.Done(); return nil, ctx.Err() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			table := d.table(t)
			listens := &noted{open: open}
			locks := locker(t, d.open(t), d.dialect, table, sqllock.WithListen(listens.Open))
			s := sqllock.New(d.open(t), d.dialect, table)
			holder := backendtest.Locker(t, s, ttl)
			for range 3 {
				x := acquire(t, holder, "name")
				got := backendtest.Next(t, locks, "name")
				eventually(t, "it is in line", func() bool {
					info, err := s.Inspect(t.Context(), "name")
					return err == nil && len(info.Line) == 1
				})
				ok(t, x.Release(t.Context()))
				ok(t, <-got)
			}
			ok(t, locks.Close(t.Context()))
			if n, closed := listens.opened.Load(), listens.closed.Load(); n != closed {
				t.Errorf("%d connections, %d closed", n, closed)
			}
		})
	}
}

func TestAListenerWhoseConnectionBreaksListensAgain(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t).Addr(), "")
	table := d.table(t)
	listens := &noted{open: pgxlisten.Connect(d.source)}
	locks := locker(t, d.open(t), d.dialect, table, sqllock.WithListen(listens.Open))
	x := acquire(t, locker(t, d.open(t), d.dialect, table), "name", core.WithTTL(time.Minute))
	got := backendtest.Next(t, locks, "name", core.WithTTL(time.Minute))
	for n := int32(1); n <= 3; n++ {
		eventually(t, "it listens", func() bool { return listens.opened.Load() >= n })
		d.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
	}
	ok(t, x.Release(t.Context()))
	ok(t, <-got)
}

// PostgreSQL lets one transaction at a time commit that notifies. Here a commit waits for a standby that there is not.
func TestAReleaseThatTellsAWaiterHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t, durable...).Addr(), "")
	table := d.tableNamed(t)
	s, watch := d.store(t, table), d.open(t)
	claims := make(map[string]driver.Claim)
	for _, name := range []string{"one", "two", "marked"} {
		claims[name] = driver.Claim{Name: name, Token: "token of " + name, TTL: time.Hour}
		granted(t, s, claims[name])
	}
	d.exec(t, "UPDATE "+table+" SET head = 'waiters ' || name")
	hears, err := pgxlisten.Connect(d.source)(t.Context())
	ok(t, err)
	defer func() { _ = hears.Close(context.WithoutCancel(t.Context())) }()
	ok(t, hears.Listen(t.Context(), "waiters"))
	hear := func(want string) {
		t.Helper()
		name, err := hears.Next(t.Context())
		if ok(t, err); name != want {
			t.Errorf("a waiter for %q is told, not one for %q", name, want)
		}
	}
	standby := func(change string) {
		t.Helper()
		d.exec(t, "ALTER SYSTEM "+change)
		_, err := watch.ExecContext(t.Context(), "SELECT pg_reload_conf()")
		ok(t, err)
	}
	waitsForStandby := func() (n int) {
		ok(t, watch.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&n))
		return n
	}
	standby("SET synchronous_standby_names = 'nobody'")
	sleeper := d.open(t)
	go func() { // until a commit waits
		for i := 0; t.Context().Err() == nil; i++ {
			if _, err := sleeper.ExecContext(t.Context(), fmt.Sprintf("CREATE TABLE sleeper_%d ()", i)); err != nil {
				return
			}
		}
	}()
	eventually(t, "commits wait", func() bool { return waitsForStandby() == 1 })

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, name := range []string{"one", "two"} {
		ok(t, s.Release(ctx, claims[name]))
		hear(name)
	}
	durably := make(chan error, 1)
	go func() {
		c := claims["marked"]
		c.Dedup = time.Hour
		durably <- s.Release(ctx, c)
	}()
	eventually(t, "one that leaves a marker waits", func() bool { return waitsForStandby() == 2 })
	if len(durably) > 0 {
		t.Error("a marker is not durable")
	}
	standby("RESET synchronous_standby_names")
	ok(t, <-durably)
	hear("marked")
}

// A row whose owner changes all the time is never as it was read. Whoever wants nothing but a place in its queue gets it.
func TestAPlaceInTheQueueIsHadWhateverTheOwnersDo(t *testing.T) {
	t.Parallel()
	for what, d := range map[string]database{
		"postgres": postgres(servers.Postgres(t).Addr(), ""),
		"mariadb":  mariadb(servers.MariaDB(t).Addr(), ""),
	} {
		table := d.tableNamed(t)
		s, other := d.store(t, table), d.store(t, table)
		held := driver.Claim{Name: "name", Token: "holder", TTL: time.Minute}
		granted(t, s, held)
		reads := 0
		ok(t, other.Queue(t.Context(), driver.Claim{Name: "name", Token: "next", TTL: time.Minute}, func() {
			reads++
			ok(t, s.Renew(t.Context(), []driver.Claim{held})[0])
		}))
		if reads != 1 {
			t.Errorf("%s: the row was read %d times", what, reads)
		}
	}
}

// A release that has not seen the entry has told nobody.
func TestWhoJoinsTheQueueOfANameThatHasComeFreeLooksAgain(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t).Addr(), "")
	table := d.tableNamed(t)
	s, other := d.store(t, table), d.store(t, table)
	held := driver.Claim{Name: "name", Token: "holder", TTL: time.Minute}
	granted(t, s, held)
	reads := 0
	ok(t, other.Queue(t.Context(), driver.Claim{Name: "name", Token: "next", TTL: time.Minute}, func() {
		switch reads++; reads {
		case 1:
			ok(t, s.Release(t.Context(), held))
		case 2: // it would take the name, if it asked for it
			d.exec(t, "UPDATE "+table+" SET token = 'another', expires = 9000000000000000 WHERE name = 'name'")
		}
	}))
	if reads != 2 {
		t.Errorf("the row was read %d times", reads)
	}
}

// A lock of the row would be a commit, which waits for the disk and holds up the owner's.
func TestARefusedAcquireLocksNoRow(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t).Addr(), "")
	table := d.tableNamed(t)
	s, other := d.store(t, table), d.store(t, table)
	granted(t, s, driver.Claim{Name: "name", Token: "holder", TTL: time.Minute})
	if _, err := other.Acquire(t.Context(), driver.Claim{Name: "name", Token: "other", TTL: time.Minute}); err == nil {
		t.Fatal("two owners")
	}
	var locked string
	ok(t, d.open(t).QueryRowContext(t.Context(), "SELECT xmax FROM "+table+" WHERE name = 'name'").Scan(&locked))
	if locked != "0" {
		t.Errorf("transaction %s has locked it", locked)
	}
}
