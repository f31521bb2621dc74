package sqllock

import (
	"context"
	"errors"
)

// Option configures a [Store].
type Option interface{ apply(*config) }

type config struct {
	table   string // quoted, once it is checked
	listen  func(ctx context.Context) (Listener, error)
	listens bool
}

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// configure is what the options say.
func (d Dialect) configure(opts []Option) (c config, err error) {
	c.table = "holdfast_locks"
	for _, o := range opts {
		if o == nil {
			return c, errors.New("sqllock: nil option")
		}
		o.apply(&c)
	}
	switch {
	case c.listens && d != Postgres:
		return c, errors.New("sqllock: WithListen: only PostgreSQL has LISTEN")
	case c.listens && c.listen == nil:
		return c, errors.New("sqllock: WithListen: nil function")
	}
	c.table, err = d.quote(c.table)
	return c, err
}

// WithTable sets the table, as name or as schema.name, each of at most 63 letters, digits and
// underscores. The name is quoted, so in PostgreSQL its case counts. The default is holdfast_locks.
// If it is given twice, the last one wins.
//
// Without a schema, PostgreSQL's public is meant, whatever the search_path: processes that find different tables do not
// exclude each other.
func WithTable(name string) Option {
	return optionFunc(func(c *config) { c.table = name })
}

// WithListen has waiters told by LISTEN and NOTIFY in PostgreSQL. Without it, and while it is broken,
// they poll.
//
// open makes one connection to the same database. It must be direct, or through a pooler in session mode:
// a pooler in transaction mode takes the LISTEN and never delivers. Package pgxlisten makes such functions
// for pgx. A Store keeps one connection while anybody waits, and for a minute after that. If it breaks, it
// is opened again, after a pause that grows from 0.1 s to 5 s, with jitter.
//
// The Store tests each new connection by a notification to itself, sent through its db. If that does not
// arrive within a second, as with a pooler in transaction mode or with another database, the Store closes
// the connection, logs why with slog's default logger, and lets waiters poll.
func WithListen(open func(ctx context.Context) (Listener, error)) Option {
	return optionFunc(func(c *config) { c.listen, c.listens = open, true })
}
