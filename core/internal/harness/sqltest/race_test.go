package sqltest

import (
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/fence"
)

// quiet is how long what must not happen is looked out for.
const quiet = 100 * time.Millisecond

// aWriterWaitsForTheOneUnderWay: then it is late, or reads what an earlier holder has written.
func aWriterWaitsForTheOneUnderWay(b *bench) {
	for _, c := range []struct {
		underWay, next uint64
		commit         bool
	}{{12, 11, true}, {12, 11, false}, {11, 12, true}} {
		b.exec("DELETE FROM " + b.seen)
		b.ok(b.do(key, 10, 1))
		tx := b.begin(nil)
		b.ok(b.guard.Advance(b.Context(), tx, key, c.underWay))
		var read int64
		done := make(chan error, 1)
		go func() {
			done <- b.guard.Do(b.Context(), b.DB, key, c.next, func(tx *sql.Tx) (err error) {
				read, err = b.value(tx)
				return err
			})
		}()
		select {
		case err := <-done:
			b.Fatalf("%+v: it did not wait: %v", c, err)
		case <-time.After(quiet):
		}
		b.ok(b.write(tx, 2))
		want, end := int64(2), tx.Commit
		if !c.commit {
			want, end = 1, tx.Rollback
		}
		b.ok(end())
		switch err := <-done; {
		case c.commit && c.next < c.underWay:
			b.stale(err, key, c.next, c.underWay)
		case err != nil || read != want:
			b.Errorf("%+v: it has read %d: %v", c, read, err)
		}
	}
}

// noIsolationLevelLetsALateWriteIn: the late writer's transaction has looked at the database
// before the newer writer's. It is told that it is stale, or that its transaction cannot be
// serialized; and a holder that is not late is never told that it is.
func noIsolationLevelLetsALateWriteIn(b *bench) {
	levels := []sql.IsolationLevel{sql.LevelDefault}
	if b.dialect != fence.SQLite {
		levels = append(levels, sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable)
	}
	if b.alone {
		b.Skip("no two transactions are under way at once")
	}
	for _, level := range levels {
		for _, mine := range []uint64{11, 13} {
			b.exec("DELETE FROM " + b.seen)
			b.ok(b.do(key, 10, 1))
			tx := b.begin(&sql.TxOptions{Isolation: level})
			_, err := tx.ExecContext(b.Context(), "SELECT value FROM "+b.data+" WHERE id = 2")
			b.ok(err)
			b.ok(b.do(key, 12, 2))
			err = b.guard.Advance(b.Context(), tx, key, mine)
			_, stale := asStale(err)
			switch late := mine < 12; {
			case late && err == nil:
				b.Errorf("%s: the late write got in", level)
			case !late && stale:
				b.Errorf("%s: the newest holder is told: %v", level, err)
			case err != nil && !stale && level == sql.LevelReadCommitted:
				b.Errorf("%s: %v", level, err)
			}
			b.ok(tx.Rollback())
		}
	}
}

// writersInAHurryEndInOrder: what is written under growing fences grows, whatever the order in which the writers come, and they
// are the first ones of their key.
func writersInAHurryEndInOrder(b *bench) {
	write := func(f uint64) error {
		return b.guard.Do(b.Context(), b.DB, key, f, func(tx *sql.Tx) error {
			value, err := b.value(tx)
			if uint64(value) > f {
				b.Errorf("%d comes after %d", f, value)
			}
			return errors.Join(err, b.write(tx, int64(f)))
		})
	}
	const writers = 16
	for range 5 {
		b.exec("DELETE FROM " + b.seen)
		b.ok(b.write(b, 0))
		var all sync.WaitGroup
		for f := uint64(1); f <= writers; f++ {
			all.Go(func() {
				err := write(f)
				for tries := 0; err != nil && !errors.Is(err, fence.ErrStale) && tries < 100; tries++ {
					err = write(f) // the database broke a deadlock
				}
				if err != nil && (f == writers || !errors.Is(err, fence.ErrStale)) {
					b.Errorf("the writer %d: %v", f, err)
				}
			})
		}
		all.Wait()
		b.has(writers)
	}
}
