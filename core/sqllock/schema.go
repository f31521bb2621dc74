package sqllock

import "strings"

// Schema returns the statement that creates the table of the locks. It does nothing if the table exists.
// Any number of processes may run it, even at the same time. If the table exists, running it needs no right to
// create one, except in MySQL, which asks for CREATE anyway. There, leave it to your migrations.
//
//	schema, err := sqllock.Schema(sqllock.Postgres)
//	…
//	_, err = db.ExecContext(ctx, schema)
//
// Of the options, only [WithTable] has an effect here.
func Schema(d Dialect, opts ...Option) (string, error) {
	c, err := d.configure(opts)
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(schemas[d], "TABLE_NAME", c.table), nil
}

// maxState is how long a row's state can be in MySQL.
const maxState = 32000

// The table has a row for each name, which stays when it is free, since it has the last
// fence; and one for each dedup marker. Times are microseconds since 1970. Names are compared
// as bytes. See type row for the columns.
//
// No index has a column that changes, and each page has room for new versions of its rows. So
// PostgreSQL writes the new version beside the old one, touches no index (HOT), and the next visit to
// the page clears the old one away.
var schemas = map[Dialect]string{
	// Of two that make it at the same time PostgreSQL fails one, but only when the other has made it.
	// Whoever finds the table needs no right to make it, which CREATE TABLE IF NOT EXISTS would ask for.
	Postgres: `DO $$ BEGIN
	IF pg_catalog.to_regclass('TABLE_NAME') IS NOT NULL THEN
		RETURN;
	END IF;
	BEGIN
		CREATE TABLE IF NOT EXISTS TABLE_NAME (
			name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
			token TEXT COLLATE "C" NOT NULL,
			label TEXT NOT NULL,
			fence BIGINT NOT NULL,
			expires BIGINT NOT NULL,
			turn BIGINT NOT NULL DEFAULT 0,
			head TEXT COLLATE "C" NOT NULL DEFAULT '',
			state TEXT COLLATE "C" NOT NULL DEFAULT ''
		) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
	EXCEPTION WHEN duplicate_table OR duplicate_object OR unique_violation THEN NULL;
	END;
END $$`,
	MySQL: `CREATE TABLE IF NOT EXISTS TABLE_NAME (
	name VARBINARY(760) NOT NULL PRIMARY KEY,
	token VARBINARY(64) NOT NULL,
	label VARBINARY(256) NOT NULL,
	fence BIGINT NOT NULL,
	expires BIGINT NOT NULL,
	turn BIGINT NOT NULL DEFAULT 0,
	head VARBINARY(128) NOT NULL DEFAULT '',
	state VARBINARY(32000) NOT NULL DEFAULT '') ENGINE=InnoDB`, // of maxState bytes
	SQLite: `CREATE TABLE IF NOT EXISTS TABLE_NAME (
	name TEXT NOT NULL PRIMARY KEY,
	token TEXT NOT NULL,
	label TEXT NOT NULL,
	fence INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	turn INTEGER NOT NULL DEFAULT 0,
	head TEXT NOT NULL DEFAULT '',
	state TEXT NOT NULL DEFAULT '') WITHOUT ROWID`,
}
