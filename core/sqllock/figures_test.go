package sqllock_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/sqllock"
)

var figurePairs = flag.Int64("pairs", 5000, "how many pairs of acquire and release the figures in docs/backends/sql.md are of")

// What many pairs leave behind stands in docs/backends/sql.md, of a million: -args -pairs 1000000.
func TestManyPairsLeaveASmallTable(t *testing.T) {
	t.Parallel()
	for what, opts := range map[string][]sqllock.Option{"logged": nil, "unlogged": {sqllock.WithUnlogged()}} {
		t.Run(what, func(t *testing.T) {
			d := postgres(servers.Postgres(t, roomy...).Addr(), "")
			d.exec(t, schema(t, d.dialect, opts...))
			watch := d.open(t)
			var before, after string
			lsn := "SELECT pg_current_wal_lsn()"
			ok(t, watch.QueryRowContext(t.Context(), lsn).Scan(&before))
			took := runPairs(t, d, *figurePairs)
			ok(t, watch.QueryRowContext(t.Context(), lsn).Scan(&after))
			var table, index, dead, updates, hot, wal int64
			eventually(t, "the server's figures are there", func() bool {
				ok(t, watch.QueryRowContext(t.Context(), `SELECT pg_relation_size(relid), pg_indexes_size(relid), n_dead_tup, n_tup_upd, n_tup_hot_upd,
					CAST(pg_wal_lsn_diff($1, $2) AS BIGINT) FROM pg_stat_user_tables WHERE relname = 'holdfast_locks'`, after, before).
					Scan(&table, &index, &dead, &updates, &hot, &wal))
				return updates >= *figurePairs*3/2 // two for each, but for the first ones; the last ones come late
			})
			t.Logf("%s: %d pairs in %v, %.0f a second: table %d KiB, index %d KiB, %d dead rows, %.3f%% HOT, %d bytes of WAL for a pair",
				what, *figurePairs, took.Round(time.Second), float64(*figurePairs)/took.Seconds(), table>>10, index>>10, dead,
				100*float64(hot)/float64(updates), wal / *figurePairs)
			if hot < updates*9/10 {
				t.Errorf("%d of %d updates were HOT", hot, updates)
			}
			if most := int64(4 << 20); table > most || index > most {
				t.Errorf("table %d, index %d bytes", table, index)
			}
		})
	}
}

// runPairs runs pairs of acquire and release, by 64 goroutines on 1,024 names.
func runPairs(t *testing.T, d database, pairs int64) time.Duration {
	t.Helper()
	const goroutines, names = 64, 16 // of each
	db := d.open(t)
	locks := locker(t, db, d.dialect)
	var wg sync.WaitGroup
	began := time.Now()
	for i := range goroutines {
		wg.Go(func() {
			for n := range 1 + pairs/goroutines {
				if err := locks.Do(t.Context(), fmt.Sprint("name-", names*int64(i)+n%names), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	ok(t, locks.Close(t.Context()))
	ok(t, db.Close()) // a connection that ends tells what it has done
	return time.Since(began)
}
