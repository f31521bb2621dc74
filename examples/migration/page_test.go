package migration_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/go-co-op/gocron/v2"
	"github.com/go-redsync/redsync/v4"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis/rueidislock"

	bsm "github.com/bsm/redislock"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/redlock"
	"github.com/holdfast-go/holdfast/examples/migration"
	"github.com/holdfast-go/holdfast/taskmw"
	"github.com/holdfast-go/holdfast/taskmw/cronmw"
)

// What follows is the code of docs/migration.md.

var (
	_ = []any{newStore, newQuorum, oldRedsync, newRedsync, oldBsm, newBsm, oldRueidislock, newRueidislock, bothRueidislock}
	_ = []any{newAsynq, newGocron, firstCertmagic, newCertmagic}
)

func pay(ctx context.Context) error { return ctx.Err() }

func newQuorum(first, second, third *redis.Client) (*core.Locker, error) {
	nodes := []driver.Driver{redislock.New(first), redislock.New(second), redislock.New(third)}
	locks, err := core.New(redlock.New(nodes)) // three servers or more; the same ones in every process
	return locks, err
}

func newStore(rdb *redis.Client) (*core.Locker, error) {
	locks, err := core.New(redislock.New(rdb, redislock.WithPrefix("lock:"))) // the old code locked "lock:order:42"
	return locks, err
}

func oldRedsync(ctx context.Context, rs *redsync.Redsync) error {
	mutex := rs.NewMutex("order:42", redsync.WithExpiry(8*time.Second))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.UnlockContext(ctx)
	return pay(ctx)
}

func newRedsync(ctx context.Context, locks *core.Locker) error {
	return locks.Do(ctx, "order:42", pay) // with redislock.WithPrefix("")
}

func oldBsm(ctx context.Context, client *bsm.Client) error {
	lock, err := client.Obtain(ctx, "order:42", 10*time.Second, &bsm.Options{
		RetryStrategy: bsm.LinearBackoff(100 * time.Millisecond)})
	if err != nil {
		return err // bsm.ErrNotObtained
	}
	defer lock.Release(ctx)
	return pay(ctx)
}

func newBsm(ctx context.Context, locks *core.Locker) error {
	return locks.Do(ctx, "order:42", pay) // with redislock.WithPrefix(""), Holdfast's redislock
}

func oldRueidislock(ctx context.Context, locker rueidislock.Locker) error {
	ctx, cancel, err := locker.WithContext(ctx, "my_lock")
	if err != nil {
		return err
	}
	defer cancel()
	return pay(ctx)
}

func newRueidislock(ctx context.Context, locks *core.Locker) error {
	return locks.Do(ctx, "my_lock", pay) // with redislock.WithPrefix("rueidislock:0:")
}

func bothRueidislock(ctx context.Context, first, second *core.Locker) error {
	// first with redislock.WithPrefix("rueidislock:0:"), second with redislock.WithPrefix("rueidislock:1:")
	return first.Do(ctx, "my_lock", func(ctx context.Context) error {
		return second.Do(ctx, "my_lock", pay)
	})
}

func newAsynq(client *asynq.Client, task *asynq.Task, mux *asynq.ServeMux, locks *core.Locker) error {
	_, err := client.Enqueue(task, asynq.Unique(time.Hour)) // stays, if you like

	mux.Use(taskmw.Middleware(locks, // is new
		taskmw.WithType("order:ship", "order:{order_id}", core.WithDedup(24*time.Hour))))
	return err
}

func newGocron(locks *core.Locker) (gocron.Scheduler, error) {
	locker, err := cronmw.NewLocker(locks, "cron:{job}", core.WithMinHold(50*time.Second)) // for jobs that run each minute
	if err != nil {
		return nil, err
	}
	return gocron.NewScheduler(gocron.WithDistributedLocker(locker))
}

func firstCertmagic(files *certmagic.FileStorage, locks *core.Locker) certmagic.Storage {
	storage := migration.NewCertmagicStorage(files, locks).AlsoLock(files) // the first deploy
	return storage
}

func newCertmagic(files *certmagic.FileStorage, locks *core.Locker) certmagic.Storage {
	storage := migration.NewCertmagicStorage(files, locks)
	return storage
}

func TestTheCodeOfMigrationMdCompiles(t *testing.T) {
	t.Parallel()
	text, err := root(t).ReadFile("examples/migration/page_test.go")
	if err != nil {
		t.Fatal(err)
	}
	code, blocks := unindented(string(text)), strings.Split(page(t, "docs/migration.md"), "```go\n")[1:]
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(code, unindented(block)) {
			t.Errorf("docs/migration.md shows what is not in page_test.go:\n%s", block)
		}
	}
	if len(blocks) != 13 {
		t.Errorf("%d blocks of code, want 13", len(blocks))
	}
}

// unindented leaves out how far lines are indented.
func unindented(code string) string {
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}
