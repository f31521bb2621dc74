package sqltest

import (
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/fence"
)

// quiet is how long what must not happen is looked out for.
const quiet = 100 * time.Millisecond

func aLateWriteWaitsForTheNewerOneUnderWay(b *bench) {
	for _, commit := range []bool{true, false} {
		b.ok(b.do(key, 10, 1))
		newer := b.begin(nil)
		b.ok(b.guard.Advance(b.Context(), newer, key, 12))
		late := make(chan error, 1)
		go func() { late <- b.do(key, 11, 2) }()
		select {
		case err := <-late:
			b.Fatalf("it did not wait: %v", err)
		case <-time.After(quiet):
		}
		if !commit {
			b.ok(newer.Rollback())
			b.ok(<-late)
			b.has(2)
			return
		}
		b.ok(newer.Commit())
		b.stale(<-late, key, 11, 12)
		b.exec("DELETE FROM " + b.seen)
	}
}

// whoHasShownItsFenceReadsWhatEarlierHoldersWrote: an earlier holder whose write is under
// way when the next one shows its fence is not overlooked by it.
func whoHasShownItsFenceReadsWhatEarlierHoldersWrote(b *bench) {
	b.ok(b.do(key, 10, 1))
	earlier := b.begin(nil)
	b.ok(b.guard.Advance(b.Context(), earlier, key, 11))
	read := make(chan int64, 1)
	go func() {
		defer close(read)
		_ = b.guard.Do(b.Context(), b.DB, key, 12, func(tx *sql.Tx) error {
			value, err := b.value(tx)
			read <- value
			return err
		})
	}()
	select {
	case value := <-read:
		b.Errorf("it has read %d while an earlier holder was writing", value)
	case <-time.After(quiet):
	}
	b.ok(b.write(earlier, 2))
	b.ok(earlier.Commit())
	if value := <-read; value != 2 {
		b.Errorf("it has read %d; want 2", value)
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

func theFirstWritersOfAKeyRace(b *bench) {
	for round := range 5 {
		b.exec("DELETE FROM " + b.seen)
		var all sync.WaitGroup
		for f := uint64(1); f <= 16; f++ {
			all.Go(func() {
				err := b.patiently(f)
				if f == 16 && err != nil {
					b.Errorf("the newest: %v", err)
				}
				if err != nil && !errors.Is(err, fence.ErrStale) {
					b.Error(err)
				}
			})
		}
		all.Wait()
		b.has(16)
		if b.Failed() {
			b.Fatalf("in round %d", round)
		}
	}
}

// patiently writes its fence, and tries again when the database broke a deadlock.
func (b *bench) patiently(f uint64) (err error) {
	for range 100 {
		err = b.do(key, f, int64(f))
		if err == nil || errors.Is(err, fence.ErrStale) {
			return err
		}
	}
	return err
}

// writersInAHurryEndInOrder: what is written under growing fences grows, whatever the order
// in which the writers come.
func writersInAHurryEndInOrder(b *bench) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 25 {
				f := 1 + rand.Uint64N(1000)
				err := b.guard.Do(b.Context(), b.DB, key, f, func(tx *sql.Tx) error {
					value, err := b.value(tx)
					if err != nil {
						return err
					}
					if uint64(value) > f {
						b.Errorf("%d comes after %d", f, value)
					}
					return b.write(tx, int64(f))
				})
				if err != nil && !errors.Is(err, fence.ErrStale) {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
}
