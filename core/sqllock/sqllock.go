package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/oldadapter"
	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Store is a lock service in an SQL database. It implements driver.Driver; see [New].
type Store struct {
	*oldadapter.Driver
	inspect.Inspector
	inspect.MarkerInspector

	old *store
}

// store is a Store on the old contract.
type store struct {
	db      *sql.DB
	dialect Dialect
	do      statements
	invalid error
	takes   *share // nil where there is nothing to share
	ends    *share
	changes changes
	pool    querier       // db
	writer  chan struct{} // of size one: has an entry while this process writes to SQLite
	checked checked
	sweep   sweep
	hub     *hub // nil if nobody is told
}

var (
	_ driver.Driver          = (*store)(nil)
	_ driver.Inspector       = (*store)(nil)
	_ driver.MarkerInspector = (*store)(nil)
	_ driver.Validator       = (*store)(nil)
	_ driver.IdleCloser      = (*store)(nil)
)

// New returns a Store that sends its statements through db. The caller still configures and closes
// db. New does no I/O. The table must exist when the Store is used, see [Schema]. core.New reports
// what cannot work: a nil db, an unknown dialect, an impossible table name, or an option that the
// dialect does not have.
func New(db *sql.DB, d Dialect, opts ...Option) *Store {
	s := newStore(db, d, opts...)
	return &Store{oldadapter.New(s), s, s, s}
}

func newStore(db *sql.DB, d Dialect, opts ...Option) *store {
	s := &store{db: db, pool: db, dialect: d, writer: make(chan struct{}, 1)}
	c, err := d.configure(opts)
	if db == nil {
		err = errors.Join(errors.New("sqllock: nil *sql.DB"), err)
	}
	if err != nil {
		s.invalid = err
		return s
	}
	if d == SQLite {
		s.pool = &prepared{db: db}
	}
	s.do = d.statements(c.table)
	s.takes, s.ends = s.shared(s.do.takeMany), s.shared(s.do.endMany)
	if c.listen != nil {
		s.hub = newHub(c.listen, s.probe)
	}
	return s
}

// Capabilities implements driver.Driver.
func (s *store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Backend: string(s.dialect), Fence: true, Block: true, Shared: true, Limit: true, Dedup: true, Keep: true, Detach: true,
	}
}

// Validate implements driver.Validator.
func (s *store) Validate() error { return s.invalid }

// CloseIdle implements driver.IdleCloser: it closes the connection of [WithListen].
func (s *store) CloseIdle(ctx context.Context) error {
	if s.hub == nil {
		return nil
	}
	return s.hub.close(ctx)
}

// channel is where this process is told, or "" if it does not listen.
func (s *store) channel() string {
	if s.hub == nil {
		return ""
	}
	return s.hub.channel
}

// Format prints only what the Store is, for every verb.
func (s *Store) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "sqllock.Store("+string(s.old.dialect)+")") // fmt has no way to return the error
}
