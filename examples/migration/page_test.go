package migration_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// What follows is the code of docs/comparison.md.

var _ = []any{newStore, newDo, bothRueidislock}

func pay(ctx context.Context) error { return ctx.Err() }

func newStore(rdb *redis.Client) (*core.Locker, error) {
	locks, err := core.New(redislock.New(rdb, redislock.WithPrefix("lock:"))) // the old code locked "lock:order:42"
	return locks, err
}

func newDo(ctx context.Context, locks *core.Locker) error {
	return locks.Do(ctx, "order:42", pay)
}

func bothRueidislock(ctx context.Context, first, second *core.Locker) error {
	// first with redislock.WithPrefix("rueidislock:0:"), second with redislock.WithPrefix("rueidislock:1:")
	return first.Do(ctx, "my_lock", func(ctx context.Context) error {
		return second.Do(ctx, "my_lock", pay)
	})
}

func TestTheCodeOfThePageCompiles(t *testing.T) {
	t.Parallel()
	text, err := root(t).ReadFile("examples/migration/page_test.go")
	ok(t, err)
	code, blocks := unindented(string(text)), strings.Split(page(t, "docs/comparison.md"), "```go\n")[1:]
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(code, unindented(block)) {
			t.Errorf("docs/comparison.md shows what is not in page_test.go:\n%s", block)
		}
	}
	if len(blocks) != 3 {
		t.Errorf("%d blocks of code, want 3", len(blocks))
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
