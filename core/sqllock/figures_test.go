package sqllock_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

var figurePairs = flag.Int("pairs", 5000, "how many pairs of acquire and release the figure in docs/backends/sql.md is of")

// What many pairs leave behind stands in docs/backends/sql.md, of a million: -v -args -pairs 1000000.
func TestManyPairsLeaveASmallTable(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t, roomy...).Addr(), "")
	d.exec(t, schema(t, d.dialect))
	db := d.open(t)
	locks := locker(t, db, d.dialect)
	const goroutines, names = 64, 16 // of each
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for n := range 1 + *figurePairs/goroutines {
				if err := locks.Do(t.Context(), fmt.Sprint("name-", names*i+n%names), func(context.Context) error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	ok(t, locks.Close(t.Context()))
	ok(t, db.Close()) // a connection that ends tells what it has done
	watch := d.open(t)
	var table, index, dead, updates, hot int
	eventually(t, "the server's figures are there", func() bool {
		ok(t, watch.QueryRowContext(t.Context(), `SELECT pg_relation_size(relid), pg_indexes_size(relid), n_dead_tup, n_tup_upd, n_tup_hot_upd
			FROM pg_stat_user_tables WHERE relname = 'holdfast_locks'`).Scan(&table, &index, &dead, &updates, &hot))
		return updates >= *figurePairs*3/2 // two for each, except the first ones; the last ones come late
	})
	t.Logf("table %d KiB, index %d KiB, %d dead rows, %d of %d updates HOT", table>>10, index>>10, dead, hot, updates)
	if hot < updates*9/10 {
		t.Errorf("%d of %d updates were HOT", hot, updates)
	}
	if most := 4 << 20; table > most || index > most {
		t.Errorf("table %d, index %d bytes", table, index)
	}
}
