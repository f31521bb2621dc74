package taskmw_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

// crash leaves the one task of a queue as a worker does that is killed: active, under a lease of asynq's that has run out. The next
// server to start delivers it again.
func (q *queue) crash(t *testing.T, id string) {
	t.Helper()
	key := "asynq:{" + q.name + "}:"
	_, err := q.rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.LMove(t.Context(), key+"pending", key+"active", "RIGHT", "LEFT")
		p.HSet(t.Context(), key+"t:"+id, "state", "active")
		p.ZAdd(t.Context(), key+"lease", redis.Z{Score: float64(time.Now().Add(-time.Hour).Unix()), Member: id})
		return nil
	})
	locktest.OK(t, err)
}

func TestACrashedWorkersTaskIsRunAgainWithoutOverlapOrNotAtAllIfItWasDone(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		leaves func(t *testing.T, l *core.Locker, dedup ...core.Option)
		runs   int32
	}{
		"in its work": {func(t *testing.T, l *core.Locker, dedup ...core.Option) {
			t.Helper()
			locktest.Hold(t, l, "order:42", append(dedup, core.WithLabel("task:order:ship:me"), core.WithTTL(3*time.Second), core.WithoutRenewal())...)
		}, 1},
		"after its work": {func(t *testing.T, l *core.Locker, dedup ...core.Option) {
			t.Helper()
			locktest.OK(t, l.Do(t.Context(), "order:42", func(context.Context) error { return nil }, dedup...))
		}, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			c.leaves(t, locktest.Locker(t, q.store()), core.WithDedup(time.Hour), core.WithDedupScope("order:ship"))
			id := q.enqueue(t, shipTask(), asynq.TaskID("me"))
			q.crash(t, id)
			var only exclusive
			own := func(next asynq.Handler) asynq.Handler { // until the dead worker's lock has run out
				return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
					err := next.ProcessTask(ctx, task)
					if held, ok := errors.AsType[*core.HeldError](err); err != nil && (!ok || held.Label != "task:order:ship:me") {
						t.Errorf("delivered again: %v", err)
					}
					return err
				})
			}
			q.serve(t, q.quick(), muxOf(func(ctx context.Context, _ *asynq.Task) error {
				defer only.enter(t)()
				if left := q.rdb.PTTL(ctx, q.prefix+"order:42").Val(); left <= 0 {
					t.Error("without the lock")
				}
				return nil
			}, own, ship(t, locktest.Locker(t, q.store()), taskmw.Retry, core.WithDedup(time.Hour))))
			if info := q.await(t, id, asynq.TaskStateCompleted); info.Retried != 1 {
				t.Errorf("retried %d times", info.Retried)
			}
			q.await(t, q.enqueue(t, shipTask()), asynq.TaskStateCompleted)
			if n := only.runs.Load(); n != c.runs {
				t.Errorf("%d runs after the crash, with a duplicate inside the dedup window", n)
			}
		})
	}
}
