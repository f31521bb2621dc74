// Package sqllock is the backend in an SQL database that the program has anyway: PostgreSQL,
// MySQL or MariaDB, or SQLite, through database/sql and a driver of the user's choice.
//
//	schema, err := sqllock.Schema(sqllock.Postgres) // for the migrations, or:
//	…
//	_, err = db.ExecContext(ctx, schema)
//	…
//	locks, err := core.New(sqllock.New(db, sqllock.Postgres))
//
// A lock is a row with the owner's token and the time until when it stands. Each operation is
// a single statement and a transaction by itself, which judges time by the database's clock
// alone: microseconds, milliseconds in SQLite. No client's clock matters, no connection is
// kept, and no session has a state, so it works behind a pooler in transaction mode too.
// There, a driver must not rely on named prepared statements, unless the pooler knows them:
// pgx wants default_query_exec_mode=exec or simple_protocol behind PgBouncer before 1.21.
//
// For a lock that lives and dies with a transaction of the caller's own, without a lease,
// there is [InTx].
//
// # What it promises
//
//   - One holder at a time: yes, on one primary. Until failover, where a standby can be
//     promoted that has not heard of the last commits: have them wait for one
//     (synchronous_commit and synchronous_standby_names; semi-synchronous replication;
//     innodb_flush_log_at_trx_commit = 1 against a crash of the machine). A clock that a new
//     primary has ahead ends leases early. Not over several primaries, as in Galera.
//   - Fences that grow: yes. A fence is the larger of the last one plus one and the
//     database's microseconds since 1970. The row of a free name remembers it for a day;
//     after that it is the clock alone. If a failover has lost the last grants, they grow as
//     long as the new primary's clock is not behind by more than the failover took.
//   - First come, first served: no. Waiting is polling, by one waiter for each process and
//     name: first after some 25 ms, more and more seldom, at last every second. LISTEN and
//     NOTIFY would need a connection for themselves and do not pass poolers.
//   - Dedup markers: yes, with the same durability as the lock. Completion leaves the marker
//     and frees the name in the same statement. An acquisition with dedup looks for the
//     marker, takes the name, and looks again.
//
// # What it costs
//
// Acquire is one statement, two if the name is held, and three with dedup where the marker
// does not stand. Renewal is one statement for up to 128 leases in PostgreSQL and SQLite, and
// one for each lease in MySQL. Release is one. A waiting process sends two for each poll. With
// go-sql-driver/mysql a statement is three messages unless interpolateParams=true.
//
// A row stays for each name, of some 100 bytes plus the name, so that fences grow; it is
// deleted when nobody has taken the name for a day. Every eighth release of a process looks
// at 32 rows for such ones and for markers that are over, in the order of their names: a
// primary key is all the index there is, and the work is bounded. The user of the locks needs
// SELECT, INSERT, UPDATE and DELETE on the table.
//
// # What to set
//
// PostgreSQL and MySQL: nothing. Every isolation level will do: what the database rolls back
// for others' sake is sent again. SQLite: a busy_timeout, which is 0 unless set, and
// journal_mode WAL; it is for the processes of one machine, not for a file on a network. All:
// a pool that has a connection to spare for renewals, see sql.DB.SetMaxOpenConns, and
// SetMaxIdleConns above its default of 2 where many leases are held.
//
// If ctx ends while a statement waits for a row that somebody has locked by hand, MySQL may
// still execute it later: then its lease stands until its TTL, with nobody to hold it.
//
// It is tested with PostgreSQL 15 (pgx), also through PgBouncer 1.18 in transaction mode,
// MariaDB 10.11 (go-sql-driver/mysql) and SQLite 3 (modernc.org/sqlite). MySQL itself is not
// among them: its statements use only what its manual documents, but for that.
package sqllock
