package sqllock

import (
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Store is a lock service in an SQL database. It implements driver.Driver; see [New].
type Store struct {
	db      *sql.DB
	dialect Dialect
	do      statements
	invalid error
	sweep   sweep
}

var (
	_ driver.Driver    = (*Store)(nil)
	_ driver.Validator = (*Store)(nil)
)

// Option configures a [Store].
type Option interface{ apply(*config) }

type config struct{ table string }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// tableOf is the table that the options say, quoted.
func (d Dialect) tableOf(opts []Option) (string, error) {
	c := config{table: "holdfast_locks"}
	for _, o := range opts {
		if o == nil {
			return "", errors.New("sqllock: nil option")
		}
		o.apply(&c)
	}
	return d.quote(c.table)
}

// WithTable sets the table, as name or as schema.name, each of at most 63 letters, digits and
// underscores. The name is quoted, so in PostgreSQL its case counts. The default is holdfast_locks.
// If it is given twice, the last one wins.
func WithTable(name string) Option {
	return optionFunc(func(c *config) { c.table = name })
}

// New returns a Store that sends its statements through db. The caller still configures and closes
// db. New does no I/O. The table must exist when the Store is used, see [Schema]. core.New reports
// what cannot work: a nil db, an unknown dialect, or an impossible table name.
func New(db *sql.DB, d Dialect, opts ...Option) *Store {
	s := &Store{db: db, dialect: d}
	table, err := d.tableOf(opts)
	if db == nil {
		err = errors.Join(errors.New("sqllock: nil *sql.DB"), err)
	}
	if err != nil {
		s.invalid = err
		return s
	}
	s.do = d.statements(table)
	return s
}

// Capabilities implements driver.Driver.
func (s *Store) Capabilities() driver.Capabilities {
	return driver.Capabilities{Backend: string(s.dialect), Fence: true, Block: true, Dedup: true}
}

// Validate implements driver.Validator.
func (s *Store) Validate() error { return s.invalid }

// Format prints only what the Store is, for every verb.
func (s *Store) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "sqllock.Store("+string(s.dialect)+")") // fmt has no way to return the error
}
