// Package sqllock is the backend in an SQL database that the program already has: PostgreSQL, MySQL
// or MariaDB, or SQLite. It uses database/sql and a driver of your choice.
//
//	schema, err := sqllock.Schema(sqllock.Postgres) // for the migrations, or:
//	…
//	_, err = db.ExecContext(ctx, schema)
//	…
//	locks, err := core.New(sqllock.New(db, sqllock.Postgres))
//
// A lock is a row with the owner's token and the time at which it ends. Each statement is a transaction
// by itself. It judges time by the database's clock alone: microseconds, milliseconds in SQLite.
// Clients' clocks do not matter, no connection is kept, and no session has a state. So the package
// also works behind a pooler in transaction mode. There, a driver must not rely on named prepared
// statements, unless the pooler knows them: pgx needs default_query_exec_mode=exec or simple_protocol
// behind PgBouncer before 1.21. Only [WithListen] needs a connection to the server itself.
//
// If the lock protects data in the same database, see [HeldInTx]. docs/backends/sql.md has the columns, and
// what to know about each database.
//
// # What it promises
//
//   - One holder at a time: yes, on one primary, until a failover. A standby that has not heard of
//     the last commits can be promoted. To prevent that, let commits wait for a standby
//     (synchronous_commit and synchronous_standby_names; semi-synchronous replication;
//     innodb_flush_log_at_trx_commit = 1 against a crash of the machine). If the new primary's clock
//     is ahead, leases end early. The promise does not hold over several primaries, as in Galera.
//     With [WithListen], a crash or a failover can also undo the last releases that told a waiter, and
//     those that shared a statement with one: the name then stays taken until its TTL ends.
//   - Fences that grow: yes. A fence is the larger of two numbers: the last fence plus one, and the
//     database's microseconds since 1970. The row of a free name remembers it for a day. After that,
//     only the clock makes fences grow. If a failover has lost the last grants, fences grow as long
//     as the new primary's clock is not behind by more than the duration of the failover.
//   - First come, first served: yes, with one entry in the queue for each process and name. With
//     [WithListen], PostgreSQL tells the first process. Otherwise waiters poll: the first one every
//     10 ms, then less often the longer the same owner has the name, up to 250 ms, or 25 ms in SQLite;
//     those behind it less often still.
//   - Dedup markers: yes, with the same durability as the lock. When the work is finished, one
//     statement leaves the marker and frees the name.
//   - Shared and limited holders, names that stay taken, hand-offs, inspection: yes.
//
// CockroachDB, YugabyteDB, Redshift and TiDB speak a dialect and cannot keep these promises, nor can MySQL
// with autocommit off. The first command to them fails with an error that says so.
//
// # What it costs
//
// Acquire is one statement if nobody is in the way, and two with dedup, shared or limited holders. A
// refusal is one or two more. Release is one; it is two with shared holders, and with dedup in MySQL and
// SQLite. A look of a waiter is two, and one if it was told of its turn. Renewal is one statement for up
// to 128 leases in PostgreSQL and SQLite, and one for each lease in MySQL. Shared and limited leases take one more in PostgreSQL, for all of them, and two each in the others. A process that waits for a name sends less than
// three in a second if it is told. With go-sql-driver/mysql a statement is three messages unless
// interpolateParams=true.
//
// In PostgreSQL, claims of many goroutines share statements.
//
// A row stays for each name, so that fences grow. It has some 120 bytes plus the name, and 100 and
// a label for each entry in the queue and each holder that shares the name. It is deleted when nobody has taken the name
// for a day. Every eighth release of a process looks at 32 rows for such rows and for markers whose window is over: in
// turn those that follow its own name, and the first ones. That needs no index except the primary key, and is one read
// and at most one commit.
// The database user needs SELECT, INSERT, UPDATE and DELETE on the table.
//
// # What to set
//
// PostgreSQL and MySQL need no settings. Every isolation level works: a statement that the database
// rolls back because of others is sent again. SQLite needs
// journal_mode WAL, and a pool of a few connections (SetMaxOpenConns): each new one costs as much as ten
// statements, and one writes at a time. SQLite is for the processes of one machine, not for a file on a
// network. All databases need a pool with a spare connection for renewals, see sql.DB.SetMaxOpenConns. If many
// leases are held, set SetMaxIdleConns above its default of 2.
//
// If ctx ends while a statement waits for a row that somebody has locked by hand, MySQL may still
// execute it later. That lease then has no holder, and ends with its TTL.
//
// It is tested with PostgreSQL 15 (pgx), also through PgBouncer 1.18 in transaction mode, MariaDB
// 10.11 (go-sql-driver/mysql) and SQLite 3 (modernc.org/sqlite); by hand on MySQL 9.7.
package sqllock
