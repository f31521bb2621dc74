package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// Store is a lock service in an SQL database. It implements driver.Driver; see [New].
type Store struct {
	db         *sql.DB
	dialect    Dialect
	do         statements
	invalid    error
	takes      func(context.Context, driver.Claim) (number, error) // see take; claims share statements where they can
	ends       func(context.Context, driver.Claim) (number, error) // see ended
	changes    changes
	pool       querier               // db
	writer     chan struct{}         // of size one: has an entry while this process writes to SQLite
	checked    atomic.Pointer[error] // whether the promises hold on the server; nil if that is not known yet
	releases   atomic.Uint32         // see tidy; it begins anywhere
	subscriber *subscriber           // nil if nobody is told
}

var (
	_ driver.Driver           = (*Store)(nil)
	_ driver.Closer           = (*Store)(nil)
	_ inspect.Inspector       = (*Store)(nil)
	_ inspect.MarkerInspector = (*Store)(nil)
)

// New returns a Store that sends its statements through db. The caller still configures and closes
// db. New does no I/O. The table must exist when the Store is used, see [Schema]. core.New reports
// what cannot work: a nil db, an unknown dialect, an impossible table name, or an option that the
// dialect does not have.
func New(db *sql.DB, d Dialect, opts ...Option) *Store {
	s := &Store{db: db, pool: db, dialect: d, writer: make(chan struct{}, 1)}
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
	s.takes, s.ends = s.together(s.do.takeMany, s.take), s.together(s.do.endMany, s.ended)
	s.releases.Store(rand.Uint32()) //nolint:gosec // G404: it is no secret
	if c.listen != nil {
		s.subscriber = newSubscriber(c.listen, s.notify)
	}
	return s
}

// Capabilities implements driver.Driver.
func (s *Store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Backend: string(s.dialect), Err: s.invalid, Hears: s.subscriber != nil, Queue: true,
		Fence: true, Block: true, Shared: true, Limit: true, Dedup: true, Keep: true, Detach: true,
	}
}

// Close implements driver.Closer: it closes the connection of [WithListen].
func (s *Store) Close(ctx context.Context) error { return s.subscriber.close(ctx) }

// Format prints only what the Store is, for every verb.
func (s *Store) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "sqllock.Store("+string(s.dialect)+")") // fmt has no way to return the error
}
