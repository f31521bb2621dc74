package sqltest

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/httpmw/sqlstore"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

// answers is a store in a table that is not there yet.
func (b *bench) answers(table string) *sqlstore.Store {
	b.Helper()
	dialect := map[fence.Dialect]sqlstore.Dialect{fence.Postgres: sqlstore.Postgres, fence.MySQL: sqlstore.MySQL, fence.SQLite: sqlstore.SQLite}[b.dialect]
	s, err := sqlstore.New(b.DB, dialect, table)
	b.ok(err)
	return s
}

func answersAreKept(b *bench) {
	table := "answers_of_" + b.data
	s := b.answers(table)
	b.ok(s.Create(b.Context()))
	storetest.Run(b.T, s)
	for _, window := range []time.Duration{time.Millisecond, time.Hour} {
		b.ok(s.Save(b.Context(), "purge-"+window.String(), []byte("x"), window))
	}
	for rows := 1; rows > 0; {
		b.ok(s.Purge(b.Context()))
		b.ok(b.QueryRowContext(b.Context(), "SELECT count(*) FROM "+table+" WHERE id = 'purge-1ms'").Scan(&rows))
	}
	if got, err := s.Load(b.Context(), "purge-1h0m0s"); err != nil || string(got) != "x" {
		b.Errorf("Purge has removed what counts: %q, %v", got, err)
	}
}

// theirTableIsMadeByManyAtOnce: by as many connections as there are processes.
func theirTableIsMadeByManyAtOnce(b *bench) {
	for range 10 {
		s := b.answers("made_of_" + b.data)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := s.Create(b.Context()); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		b.exec("DROP TABLE made_of_" + b.data)
	}
}
