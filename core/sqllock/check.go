package sqllock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/core/driver"
)

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
	if s.dialect == SQLite {
		return nil
	}
	if said := s.checked.Load(); said != nil {
		return *said
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
	err := driver.NotSent(s.dialect.supports(version, commits))
	s.checked.Store(&err)
	return err
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
