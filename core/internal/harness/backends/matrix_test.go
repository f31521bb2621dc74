package backends

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/etcdlock"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memcachedlock"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/natslock"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/redlock"
	"github.com/holdfast-go/holdfast/core/sqllock"
	"github.com/holdfast-go/holdfast/core/zklock"
)

// matrix is the table of docs/backends/README.md.
func matrix(t *testing.T) string {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = rdb.Close() })
	nodes := []driver.Driver{memlock.New(), memlock.New(), memlock.New()}
	var b strings.Builder
	b.WriteString("| backend | fence | dedup | shared | limit | min-hold | hand-off | shortest TTL |\n|---|---|---|---|---|---|---|---|\n")
	for _, row := range []struct {
		name    string
		backend driver.Driver
	}{
		{"`core/memlock`", memlock.New()},
		{"`core/redislock`", redislock.New(rdb)},
		{"`core/redlock`", redlock.New(nodes)},
		{"`core/redlock`, `WithFence`", redlock.New(nodes, redlock.WithFence())},
		{"`core/sqllock`", sqllock.New(nil, sqllock.Postgres)},
		{"`core/zklock`", zklock.New(nil, nil)},
		{"`core/etcdlock`", etcdlock.New(nil)},
		{"`core/natslock`", natslock.New(nil, "bucket")},
		{"`core/memcachedlock`", memcachedlock.New(nil)},
	} {
		can := row.backend.Capabilities()
		fmt.Fprintf(&b, "| %s |", row.name)
		for _, able := range []bool{can.Fence, can.Dedup, can.Shared, can.Limit, can.Keep, can.Detach} {
			b.WriteString(map[bool]string{true: " yes |", false: " no |"}[able])
		}
		fmt.Fprintf(&b, " %g s |\n", max(can.MinTTL, 100*time.Millisecond).Seconds())
	}
	return b.String()
}

func TestTheMatrixIsWhatTheBackendsSay(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/backends/README.md")
	backendtest.OK(t, err)
	if table := matrix(t); !strings.Contains(string(page), "\n"+table+"\n") {
		t.Errorf("docs/backends/README.md lacks this table:\n%s", table)
	}
}
