package sqltest

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/httpmw/sqlstore"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

// answersAreKept in a table that as many connections make at once as there are processes.
func answersAreKept(b *bench) {
	dialects := map[fence.Dialect]sqlstore.Dialect{
		fence.Postgres: sqlstore.Postgres, fence.MySQL: sqlstore.MySQL, fence.SQLite: sqlstore.SQLite,
	}
	table := "answers_of_" + b.data
	s, err := sqlstore.New(b.DB, dialects[b.dialect], table)
	b.ok(err)
	for round := range 10 {
		if round > 0 {
			b.exec("DROP TABLE " + table)
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if err := s.Create(b.Context()); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
	}
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
