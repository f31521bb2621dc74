package sqllock_test

import (
	"context"
	"errors"
	"fmt"
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

// noted is a way to listen that notes what it opens.
type noted struct {
	open func(ctx context.Context) (sqllock.Listener, error)

	mu     sync.Mutex // protects the fields below
	conns  []sqllock.Listener
	closed int
}

type notedConn struct {
	sqllock.Listener
	by *noted
}

func (n *noted) Open(ctx context.Context) (sqllock.Listener, error) {
	l, err := n.open(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	n.conns = append(n.conns, l)
	return notedConn{l, n}, nil
}

func (c notedConn) Close(ctx context.Context) error {
	c.by.mu.Lock()
	c.by.closed++
	c.by.mu.Unlock()
	return c.Listener.Close(ctx)
}

func (n *noted) opened() (conns, closed int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns), n.closed
}

// inLine returns how many places a name's line has.
func inLine(t *testing.T, s *sqllock.Store, name string) int {
	t.Helper()
	info, err := s.Inspect(t.Context(), name)
	ok(t, err)
	return len(info.Line)
}

func TestAStoreListensOnOneConnectionWhileAnybodyWaitsAndClosesIt(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t).Addr(), "")
	table := d.table(t)
	listens := &noted{open: pgxlisten.Connect(d.source)}
	locks, err := core.New(sqllock.New(d.open(t), d.dialect, table, sqllock.WithListen(listens.Open)), core.WithTTL(ttl))
	ok(t, err)
	holder := locker(t, d.open(t), d.dialect, table)
	var held []*core.Lease
	for i := range 5 {
		held = append(held, acquire(t, holder, fmt.Sprint("name-", i)))
	}
	if n, _ := listens.opened(); n != 0 {
		t.Errorf("%d connections before anybody waits", n)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			x, err := locks.Acquire(t.Context(), fmt.Sprint("name-", i%5))
			if err == nil {
				err = x.Release(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "somebody listens", func() bool { n, _ := listens.opened(); return n > 0 })
	for _, x := range held {
		ok(t, x.Release(t.Context()))
	}
	wg.Wait()
	ok(t, locks.Close(t.Context()))
	if n, closed := listens.opened(); n != 1 || closed != 1 {
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
			locks, err := core.New(sqllock.New(d.open(t), d.dialect, table, sqllock.WithListen(listens.Open)), core.WithTTL(ttl))
			ok(t, err)
			s := sqllock.New(d.open(t), d.dialect, table)
			holder := backendtest.Locker(t, s, ttl)
			for range 3 {
				x := acquire(t, holder, "name")
				got := backendtest.Next(t, locks, "name")
				eventually(t, "it is in line", func() bool { return inLine(t, s, "name") == 1 })
				ok(t, x.Release(t.Context()))
				ok(t, <-got)
			}
			ok(t, locks.Close(t.Context()))
			if n, closed := listens.opened(); n != closed {
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
	for n := 1; n <= 3; n++ {
		eventually(t, "it listens", func() bool { opened, _ := listens.opened(); return opened >= n })
		d.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
	}
	ok(t, x.Release(t.Context()))
	ok(t, <-got)
}

// statementsOf counts the statements that a server has been sent, but for those by which pgx asks whether a
// connection is still there.
func statementsOf(srv *servers.Server) int {
	return strings.Count(srv.Log(), "LOG:  execute ")
}

// PostgreSQL lets one transaction at a time commit that notifies. Here a commit waits for a standby that there is not.
func TestAReleaseThatTellsAWaiterHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	srv := servers.Postgres(t, durable...)
	d := postgres(srv.Addr(), "")
	table := d.tableNamed(t)
	s, watch := d.store(t, table), d.open(t)
	var claims []driver.Claim
	for i := range 6 {
		c := driver.Claim{Name: fmt.Sprint("name-", i), Token: fmt.Sprint("token-", i), TTL: time.Hour}
		if i >= 4 {
			c.Dedup = time.Hour
		}
		_, err := s.Acquire(t.Context(), c)
		ok(t, err)
		claims = append(claims, c)
	}
	d.exec(t, "UPDATE "+table+" SET head = 'waiters ' || name")
	hears, err := pgxlisten.Connect(d.source)(t.Context())
	ok(t, err)
	defer func() { _ = hears.Close(context.WithoutCancel(t.Context())) }()
	ok(t, hears.Listen(t.Context(), "waiters"))
	heard := make(map[string]bool)
	hear := func(n int) {
		t.Helper()
		for len(heard) < n {
			name, err := hears.Next(t.Context())
			ok(t, err)
			heard[name] = true
		}
	}

	d.exec(t, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	_, err = watch.ExecContext(t.Context(), "SELECT pg_reload_conf()")
	ok(t, err)
	waitsForStandby := func() (n int) {
		ok(t, watch.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&n))
		return n
	}
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
	for _, c := range claims[:4] {
		ok(t, s.Release(ctx, c))
	}
	hear(4)
	durably := make(chan error)
	for _, c := range claims[4:] {
		go func() { durably <- s.Release(ctx, c) }()
	}
	eventually(t, "those that leave a marker wait", func() bool { return waitsForStandby() == 3 })
	if len(durably) > 0 {
		t.Error("a marker is not durable")
	}
	d.exec(t, "ALTER SYSTEM RESET synchronous_standby_names")
	_, err = watch.ExecContext(t.Context(), "SELECT pg_reload_conf()")
	ok(t, err)
	ok(t, <-durably)
	ok(t, <-durably)
	hear(6)
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
		_, err := s.Acquire(t.Context(), held)
		ok(t, err)
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
	_, err := s.Acquire(t.Context(), held)
	ok(t, err)
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
	_, err := s.Acquire(t.Context(), driver.Claim{Name: "name", Token: "holder", TTL: time.Minute})
	ok(t, err)
	if _, err := other.Acquire(t.Context(), driver.Claim{Name: "name", Token: "other", TTL: time.Minute}); err == nil {
		t.Fatal("two owners")
	}
	var locked string
	ok(t, d.open(t).QueryRowContext(t.Context(), "SELECT xmax FROM "+table+" WHERE name = 'name'").Scan(&locked))
	if locked != "0" {
		t.Errorf("transaction %s has locked it", locked)
	}
}
