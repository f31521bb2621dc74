package sqllock

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Dialect is a kind of SQL database.
type Dialect string

// The dialects.
const (
	Postgres Dialect = "postgres" // PostgreSQL 9.5 or later
	MySQL    Dialect = "mysql"    // MySQL 5.7 or later, MariaDB 10.2 or later; InnoDB
	SQLite   Dialect = "sqlite"   // SQLite 3.35 or later
)

// Schema returns the statement that creates the table of the locks. The statement does nothing if the
// table exists. Any number of processes may run it, even at the same time. If somebody else has run
// it, the user of the locks needs no right to do so.
//
//	schema, err := sqllock.Schema(sqllock.Postgres)
//	…
//	_, err = db.ExecContext(ctx, schema)
//
// Of the options, only [WithTable] has an effect here.
func Schema(d Dialect, opts ...Option) (string, error) {
	table, err := d.tableOf(opts)
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(schemas[d], "TABLE_NAME", table), nil
}

// The table has a row for each name, which stays when it is free, since it has the last
// fence; and one for each dedup marker. Times are microseconds since 1970. Names are compared
// as bytes.
var schemas = map[Dialect]string{
	// Of two that make it at the same time PostgreSQL fails one, but only when the other has made it.
	Postgres: `DO $$ BEGIN
	CREATE TABLE IF NOT EXISTS TABLE_NAME (
		name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
		token TEXT COLLATE "C" NOT NULL,
		label TEXT NOT NULL,
		fence BIGINT NOT NULL,
		expires BIGINT NOT NULL);
EXCEPTION WHEN duplicate_table OR duplicate_object OR unique_violation THEN NULL;
END $$`,
	MySQL: `CREATE TABLE IF NOT EXISTS TABLE_NAME (
	name VARBINARY(760) NOT NULL PRIMARY KEY,
	token VARBINARY(64) NOT NULL,
	label VARBINARY(256) NOT NULL,
	fence BIGINT NOT NULL,
	expires BIGINT NOT NULL) ENGINE=InnoDB`,
	SQLite: `CREATE TABLE IF NOT EXISTS TABLE_NAME (
	name TEXT NOT NULL PRIMARY KEY,
	token TEXT NOT NULL,
	label TEXT NOT NULL,
	fence INTEGER NOT NULL,
	expires INTEGER NOT NULL) WITHOUT ROWID`,
}

// now is the database's time in microseconds since 1970. SQLite has milliseconds.
var now = map[Dialect]string{
	Postgres: `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`, // now() is when the transaction began
	MySQL:    `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`,      // no time zone: an hour of autumn comes twice
	SQLite:   `(CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)`,
}

// quote makes one name, or two with a dot between them, an identifier that is no keyword.
func (d Dialect) quote(table string) (string, error) {
	if _, ok := schemas[d]; !ok {
		return "", fmt.Errorf("sqllock: unknown dialect %.40q", string(d))
	}
	if !identifier.MatchString(table) {
		return "", fmt.Errorf("sqllock: WithTable(%.140q): not one or two names of letters, digits and underscores, of at most 63 bytes each", table)
	}
	mark := `"`
	if d == MySQL {
		mark = "`"
	}
	return mark + strings.ReplaceAll(table, ".", mark+"."+mark) + mark, nil
}

// identifier is what every dialect takes: PostgreSQL silently cuts names off at 63 bytes.
var identifier = regexp.MustCompile(fmt.Sprintf(`^%[1]s(\.%[1]s)?$`, `[A-Za-z_][A-Za-z0-9_]{0,62}`))

// statement is what is sent, with the dialect's own parameters.
type statement struct {
	text  string
	order []int // of the arguments, where the dialect does not number its parameters
}

var parameter = regexp.MustCompile(`\$[1-9]`)

// statement makes one out of its template, whose parameters are $1 to $9.
func (d Dialect) statement(template, table string) (s statement) {
	template = strings.NewReplacer("TABLE_NAME", table, "NOW", now[d]).Replace(template)
	s.text = parameter.ReplaceAllStringFunc(template, func(p string) string {
		switch d {
		case MySQL:
			n, _ := strconv.Atoi(p[1:]) // it is a digit
			s.order = append(s.order, n-1)
			return "?"
		case SQLite:
			return "?" + p[1:]
		default:
			return p
		}
	})
	return s
}

// args puts the arguments in the order of the parameters.
func (s statement) args(args []any) []any {
	if s.order == nil {
		return args
	}
	ordered := make([]any, len(s.order))
	for i, n := range s.order {
		ordered[i] = args[n]
	}
	return ordered
}
