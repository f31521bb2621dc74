//go:build linux

package sqllock_test

import (
	"context"
	"database/sql"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// storm runs one on a database that has a table. What a fault itself is told, such as that the server is gone, does not matter.
func (d database) storm(t *testing.T, faults ...backendtest.Fault) {
	t.Helper()
	backendtest.Storm{
		Process: d.process(t, "holdfast_locks"),
		Faults:  faults,
	}.Run(t)
}

func TestAStormOnPostgresKeepsOneHolderAtATime(t *testing.T) {
	t.Parallel()
	srv := servers.Postgres(t, durable...)
	d := postgres(srv.Addr(), "").listening()
	d.exec(t, schema(t, d.dialect))
	db := d.open(t)
	faults := append(backendtest.ServerFaults(srv),
		backendtest.Fault{Name: "the server ends all connections", Strike: func(func(time.Duration)) {
			_, _ = db.ExecContext(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'")
		}},
		backendtest.Fault{Name: "a long transaction, which locks a row in the end", Strike: func(pause func(time.Duration)) {
			holdHorizon(t, d, func(tx *sql.Tx) {
				pause(800 * time.Millisecond)
				_, _ = tx.ExecContext(t.Context(), "SELECT FROM holdfast_locks LIMIT 1 FOR UPDATE")
				pause(800 * time.Millisecond)
			})
		}},
		backendtest.Fault{Name: "a process of the server stands still, with what it has locked", Strike: func(pause func(time.Duration)) {
			defer freeze(t, db)()
			pause(2 * time.Second)
		}},
	)
	if disk := smallDisk(t); disk != "" {
		d.onDisk(t, disk)
		faults = append(faults, backendtest.Fault{Name: "the disk is full", Strike: func(pause func(time.Duration)) {
			holdHorizon(t, d, func(*sql.Tx) { // nor do old versions of rows make room
				defer fill(t, disk)()
				pause(1500 * time.Millisecond)
			})
		}})
	}
	d.storm(t, faults...)
}

func TestAStormOnMariaDBKeepsOneHolderAtATime(t *testing.T) {
	t.Parallel()
	srv := servers.MariaDB(t, "--innodb-flush-log-at-trx-commit=2")
	d := mariadb(srv.Addr(), "")
	d.exec(t, schema(t, d.dialect))
	db := d.open(t)
	d.storm(t, append(backendtest.ServerFaults(srv),
		lockRows(db, "SELECT name FROM holdfast_locks FOR UPDATE"),
		backendtest.Fault{Name: "the server ends all connections", Strike: func(func(time.Duration)) { killAll(t, db) }},
	)...)
}

func TestAStormOnSQLiteKeepsOneHolderAtATime(t *testing.T) {
	t.Parallel()
	d := sqlite(t, "&_pragma=journal_mode(WAL)")
	d.exec(t, schema(t, d.dialect))
	d.storm(t, lockRows(d.open(t), "UPDATE holdfast_locks SET turn = turn"))
}

// lockRows is a transaction of somebody else that has locked all rows.
func lockRows(db *sql.DB, statement string) backendtest.Fault {
	return backendtest.Fault{Name: "all rows are locked", Strike: func(pause func(time.Duration)) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return
		}
		defer func() { _ = tx.Rollback() }()
		_, _ = tx.ExecContext(ctx, statement)
		pause(1500 * time.Millisecond)
	}}
}

// holdHorizon calls f in a transaction whose snapshot keeps the server from clearing away what is out of date.
func holdHorizon(t *testing.T, d database, f func(tx *sql.Tx)) {
	t.Helper()
	db, err := sql.Open(d.driver, d.source)
	ok(t, err)
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return
	}
	defer func() { _ = tx.Rollback() }()
	_, _ = tx.ExecContext(t.Context(), "SELECT txid_current(), count(*) FROM holdfast_locks")
	f(tx)
}

// freeze stops one of the server's processes, one at work if there is any, until thaw is called.
func freeze(t *testing.T, db *sql.DB) (thaw func()) {
	t.Helper()
	var pid int
	if db.QueryRowContext(t.Context(), "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' "+
		"ORDER BY state = 'active' DESC, random() LIMIT 1").Scan(&pid) != nil {
		return func() {}
	}
	_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended
	return func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
}
