package sqllock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/core/driver"
)

// checked remembers that the server is one that the promises hold on.
type checked struct {
	done atomic.Bool
	not  atomic.Pointer[error]
}

// unsafe are the servers that speak a dialect and cannot keep what this package promises, by what they
// say about their version.
var unsafe = []struct {
	dialect Dialect
	says    string
	name    string
	why     string
}{
	{Postgres, "CockroachDB", "CockroachDB", "each node judges a TTL by its own clock, and there is no LISTEN"},
	{Postgres, "-YB-", "YugabyteDB", "each node judges a TTL by its own clock"},
	{Postgres, "Redshift", "Redshift", "it has no row locks"},
	{MySQL, "TiDB", "TiDB", "each node judges a TTL by its own clock"},
}

// ready asks the server, once, what it is.
func (s *Store) ready(ctx context.Context) error {
	if s.checked.done.Load() {
		return nil
	}
	if not := s.checked.not.Load(); not != nil {
		return *not
	}
	if s.dialect == SQLite {
		s.checked.done.Store(true)
		return nil
	}
	if err := driver.NotSent(ctx.Err()); err != nil {
		return err
	}
	version, commits := "", true
	text, dest := "SELECT pg_catalog.version()", []any{&version}
	if s.dialect == MySQL {
		text, dest = "SELECT version(), @@autocommit", append(dest, &commits)
	}
	if err := s.db.QueryRowContext(ctx, text).Scan(dest...); err != nil {
		return driver.NotSent(s.dialect.classify(err))
	}
	if err := s.dialect.supports(version, commits); err != nil {
		err = driver.NotSent(err)
		s.checked.not.Store(&err)
		return err
	}
	s.checked.done.Store(true)
	return nil
}

func (d Dialect) supports(version string, commits bool) error {
	for _, u := range unsafe {
		if u.dialect == d && strings.Contains(version, u.says) {
			return fmt.Errorf("sqllock: %s is not supported: %s", u.name, u.why)
		}
	}
	if !commits {
		return errors.New("sqllock: autocommit is off, so a grant would be undone when its connection ends: set autocommit=1")
	}
	return nil
}
