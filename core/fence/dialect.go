package fence

import (
	"fmt"
	"regexp"
	"strings"
)

// Dialect is a kind of SQL database.
type Dialect string

// The dialects.
const (
	Postgres Dialect = "postgres" // PostgreSQL 9.5 or later, and compatible databases
	MySQL    Dialect = "mysql"    // MySQL 5.7 or later, MariaDB 10.2 or later; InnoDB
	SQLite   Dialect = "sqlite"   // SQLite 3.24 or later
)

// statements are what a guard sends.
type statements struct {
	schema  string
	advance string // its arguments: key and fence
	seen    string // its argument: key
	// newer is how many rows advance affects if it was certainly no smaller fence. With any
	// other number, seen decides.
	newer int64
}

// advance locks the row until the end of the transaction, whatever it finds in it. So what
// is read after it is what the next writer, too, will find.
func (d Dialect) statements(table string) (s statements, err error) {
	switch d {
	case Postgres: // "C": keys are compared as bytes, whatever the database's collation
		return statements{
			schema: "CREATE TABLE IF NOT EXISTS " + table + ` (name TEXT COLLATE "C" NOT NULL PRIMARY KEY, fence BIGINT NOT NULL)`,
			advance: "INSERT INTO " + table + " AS f (name, fence) VALUES ($1, $2) " +
				"ON CONFLICT (name) DO UPDATE SET fence = excluded.fence WHERE f.fence <= excluded.fence",
			seen:  "SELECT fence FROM " + table + " WHERE name = $1",
			newer: 1,
		}, nil
	case MySQL:
		return statements{
			// Text would be equal ignoring case and trailing spaces; other engines have no transactions.
			schema: "CREATE TABLE IF NOT EXISTS " + table + " (name VARBINARY(200) NOT NULL PRIMARY KEY, fence BIGINT NOT NULL) ENGINE=InnoDB",
			advance: "INSERT INTO " + table + " (name, fence) VALUES (?, ?) " +
				"ON DUPLICATE KEY UPDATE fence = GREATEST(fence, VALUES(fence))",
			// A plain SELECT would read the transaction's snapshot, which may be older than the lock.
			seen: "SELECT fence FROM " + table + " WHERE name = ? FOR UPDATE",
			// Two are a changed row. One is a new row or, with clientFoundRows, an unchanged one.
			newer: 2,
		}, nil
	case SQLite:
		return statements{
			schema: "CREATE TABLE IF NOT EXISTS " + table + " (name TEXT NOT NULL PRIMARY KEY, fence INTEGER NOT NULL) WITHOUT ROWID",
			advance: "INSERT INTO " + table + " (name, fence) VALUES (?, ?) " +
				"ON CONFLICT (name) DO UPDATE SET fence = excluded.fence WHERE fence <= excluded.fence",
			seen:  "SELECT fence FROM " + table + " WHERE name = ?",
			newer: 1,
		}, nil
	default:
		return s, invalidf("dialect %q", string(d))
	}
}

// quote makes one name, or two with a dot between them, an identifier that is no keyword.
func (d Dialect) quote(table string) (string, error) {
	if !identifier.MatchString(table) {
		return "", invalidf("table %.140q: not one or two names of letters, digits and underscores, of at most 63 bytes each", table)
	}
	mark := `"`
	if d == MySQL {
		mark = "`"
	}
	return mark + strings.ReplaceAll(table, ".", mark+"."+mark) + mark, nil
}

// identifier is what every dialect takes: PostgreSQL silently cuts names off at 63 bytes.
var identifier = regexp.MustCompile(fmt.Sprintf(`^%[1]s(\.%[1]s)?$`, `[A-Za-z_][A-Za-z0-9_]{0,62}`))
