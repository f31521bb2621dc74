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

// now is the database's time in microseconds since 1970. SQLite has milliseconds.
var now = map[Dialect]string{
	Postgres: `CAST(EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000000 AS BIGINT)`, // now() is when the transaction began
	MySQL:    `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`,                                      // no time zone: an hour of autumn comes twice
	SQLite:   `(CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)`,
}

// asked is when the database received the statement. That is never later than what the statement sees:
// a row that has ended by then has certainly ended.
var asked = map[Dialect]string{
	Postgres: `CAST(EXTRACT(EPOCH FROM pg_catalog.statement_timestamp()) OPERATOR(pg_catalog.*) 1000000 AS BIGINT)`,
	MySQL:    now[MySQL],
	SQLite:   now[SQLite],
}

// standby says whether the server takes no writes, as @@read_only does with a number or in words, and Aurora's readers by the
// other variable.
var standby = map[Dialect]string{
	Postgres: `pg_catalog.pg_is_in_recovery()`,
	MySQL:    `(@@innodb_read_only OR @@read_only NOT IN ('0', 'OFF'))`,
	SQLite:   `false`,
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
	switch {
	case d == MySQL:
		mark = "`"
	case d == Postgres && !strings.Contains(table, "."): // a search path could find another one
		table = "public." + table
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

// PostgreSQL has to be told what a parameter is where it cannot infer it, and MySQL spells it differently.
var typed = regexp.MustCompile(`(INT|TXT)\((\$[1-9]\d?)\)`)

func (d Dialect) typed(template string) string {
	if d == MySQL {
		return typed.ReplaceAllString(template, "$2")
	}
	return typed.ReplaceAllStringFunc(template, func(s string) string {
		return "CAST(" + s[len("INT("):len(s)-1] + " AS " + map[string]string{"INT": "BIGINT", "TXT": "TEXT"}[s[:3]] + ")"
	})
}

var parameter = regexp.MustCompile(`\$[1-9]\d?`)

// statement makes one out of its template, whose parameters are $1 to $99.
func (d Dialect) statement(template, table string) (s statement) {
	template = strings.NewReplacer("TABLE_NAME", table, "NOW", now[d], "ASKED", asked[d], "STANDBY", standby[d]).Replace(d.typed(template))
	s.text = parameter.ReplaceAllStringFunc(template, func(p string) string {
		switch d {
		case MySQL:
			n, _ := strconv.Atoi(p[1:]) // they are digits
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
