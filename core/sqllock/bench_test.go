package sqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/sqllock"
)

// BenchmarkPairs is acquire and release, of a name of its own for each goroutine.
func BenchmarkPairs(b *testing.B) {
	srv := servers.Postgres(b, "-c", "max_connections=200")
	for _, n := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			db := benchDB(b, srv.Addr())
			locks, err := core.New(sqllock.New(db, sqllock.Postgres))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = locks.Close(context.Background()) }()
			var wg sync.WaitGroup
			var left atomic.Int64
			run := func(pairs int64) {
				left.Store(pairs)
				for i := range n {
					name := fmt.Sprint("pair-", i)
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							x, err := locks.TryAcquire(context.Background(), name)
							if err == nil {
								err = x.Release(context.Background())
							}
							if err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			}
			run(int64(50 * n)) // connects, and prepares
			b.ResetTimer()
			began := time.Now()
			run(int64(b.N))
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "pairs/s")
		})
	}
}
func benchDB(b *testing.B, addr string) *sql.DB {
	b.Helper()
	db, err := sql.Open("pgx", "postgres://postgres@"+addr+"/postgres?sslmode=disable")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(50)
	db.SetMaxIdleConns(50)
	schema, err := sqllock.Schema(sqllock.Postgres)
	if err == nil {
		_, err = db.ExecContext(context.Background(), schema)
	}
	if err != nil {
		b.Fatal(err)
	}
	return db
}
