// Package sqlstore keeps the answers of package idempotency in a table of PostgreSQL, MySQL, MariaDB or
// SQLite.
//
//	CREATE TABLE holdfast_answers (
//	  id varchar(64) PRIMARY KEY, -- varbinary(64) in MySQL, whose text ignores case
//	  answer bytea NOT NULL, -- longblob in MySQL, blob in SQLite
//	  until bigint NOT NULL  -- Unix milliseconds
//	)
//
// [Store.Create] makes it, and [Store.Purge] removes what is over. Windows end by the clocks of the
// processes that use the store, so they should not differ by much.
package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw/idempotency"
)

// Dialect is the SQL of a product.
type Dialect uint8

// The dialects. MySQL is MariaDB's too.
const (
	Postgres Dialect = iota + 1
	MySQL
	SQLite
)

// Store is a store for answers. Make it with [New]. The database stays yours, to close.
type Store struct {
	db      *sql.DB
	dialect Dialect
	table   string
}

var _ idempotency.Store = (*Store)(nil)

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$`)

// New returns a store on a table, "" for holdfast_answers. It does no I/O. A dialect or a name that
// cannot work is [core.ErrInvalid].
func New(db *sql.DB, dialect Dialect, table string) (*Store, error) {
	table = cmp.Or(table, "holdfast_answers")
	switch {
	case db == nil:
		return nil, fmt.Errorf("sqlstore: %w: nil database", core.ErrInvalid)
	case dialect < Postgres || dialect > SQLite:
		return nil, fmt.Errorf("sqlstore: %w: dialect %d", core.ErrInvalid, dialect)
	case !tableName.MatchString(table):
		return nil, fmt.Errorf("sqlstore: %w: table %q: not a plain name", core.ErrInvalid, table)
	}
	return &Store{db, dialect, table}, nil
}

// Create makes the table, unless it is there. Any number of processes may call it at the same time.
func (s *Store) Create(ctx context.Context) error {
	id, blob := "varchar(64)", "blob"
	switch s.dialect {
	case Postgres:
		blob = "bytea"
	case MySQL:
		id, blob = "varbinary(64)", "longblob"
	default: // SQLite
	}
	create := "CREATE TABLE IF NOT EXISTS " + s.table + " (id " + id + " PRIMARY KEY, answer " + blob + " NOT NULL, until bigint NOT NULL)"
	if err := s.exec(ctx, create); err == nil || ctx.Err() != nil {
		return err
	}
	return s.exec(ctx, create) // of two that make it at the same time PostgreSQL fails one, once the other has made it
}

// Purge removes the answers whose window is over. Call it now and then, in one process or in all.
func (s *Store) Purge(ctx context.Context) error {
	return s.exec(ctx, "DELETE FROM "+s.table+" WHERE until <= "+s.arg(1), time.Now().UnixMilli())
}

// Load implements [idempotency.Store].
func (s *Store) Load(ctx context.Context, key string) ([]byte, error) {
	var answer []byte
	err := s.db.QueryRowContext(ctx, "SELECT answer FROM "+s.table+" WHERE id = "+s.arg(1)+" AND until > "+s.arg(2),
		key, time.Now().UnixMilli()).Scan(&answer)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return answer, err
}

// Save implements [idempotency.Store].
func (s *Store) Save(ctx context.Context, key string, answer []byte, window time.Duration) error {
	now := time.Now()
	if err := s.exec(ctx, "DELETE FROM "+s.table+" WHERE id = "+s.arg(1)+" AND until <= "+s.arg(2), key, now.UnixMilli()); err != nil {
		return err
	}
	insert, end := "INSERT", " ON CONFLICT (id) DO NOTHING"
	if s.dialect == MySQL {
		insert, end = "INSERT IGNORE", ""
	}
	return s.exec(ctx, insert+" INTO "+s.table+" (id, answer, until) VALUES ("+s.arg(1)+", "+s.arg(2)+", "+s.arg(3)+")"+end,
		key, answer, now.Add(window).UnixMilli())
}

func (s *Store) exec(ctx context.Context, query string, args ...any) error {
	_, err := s.db.ExecContext(ctx, query, args...)
	return err
}

func (s *Store) arg(n int) string {
	if s.dialect == Postgres {
		return fmt.Sprintf("$%d", n)
	}
	return "?"
}
