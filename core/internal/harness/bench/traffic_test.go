package bench

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func TestCommandsAreCountedHoweverTheWritesCutThem(t *testing.T) {
	t.Parallel()
	stream := []byte("*3\r\n$3\r\nSET\r\n$1\r\n*\r\n$13\r\n$3\r\nGET\r\n$1\r\n\r\n" +
		"*1\r\n$4\r\nPING\r\n" +
		"*2\r\n$3\r\nget\r\n$0\r\n\r\n" +
		"*2\r\n$3\r\nGet\r\n$1\r\nx\r\n")
	for size := 1; size <= len(stream); size++ {
		m := meter{sent: new(atomic.Int64)}
		for rest := stream; len(rest) > 0; {
			n := min(size, len(rest))
			m.feed(rest[:n])
			rest = rest[n:]
		}
		if got := m.sent.Load(); got != 4 {
			t.Fatalf("writes of %d bytes: %d", size, got)
		}
	}
}

// The server counts what scripts do like what clients send: these clients send no scripts, so both counts are the same.
func TestTheCountIsTheServersOfEveryClient(t *testing.T) {
	t.Parallel()
	b, ctx, traffic := quickBench(t), t.Context(), new(traffic)
	rdb := client(b.server.addr, traffic)
	t.Cleanup(func() { _ = rdb.Close() })
	auto, err := rdb.AutoPipeline()
	backendtest.OK(t, err)
	l, err := openRueidislock(b.server.addr, traffic)
	backendtest.OK(t, err)
	t.Cleanup(func() { _ = l.close(t.Context()) })
	other := l.(*rueidislockLocker).locks.Client()
	calls := func() (sum int64) { // what the server does not know, such as a part of a handshake, is an error there
		sum = int64(b.server.number("stats", "total_error_replies"))
		for key, value := range b.server.info("commandstats") {
			if name, ok := strings.CutPrefix(key, "cmdstat_"); ok && name != "info" {
				n, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
				count, err := strconv.ParseInt(n, 10, 64)
				backendtest.OK(t, err)
				sum += count
			}
		}
		return sum
	}
	backendtest.OK(t, other.Do(ctx, other.B().Ping().Build()).Error()) // it is connected, and so is the one before
	backendtest.OK(t, rdb.Ping(ctx).Err())
	atFirst, before := traffic.sent.Load(), calls()
	for range 10 {
		rdb.Set(ctx, "a", "b", time.Minute)
		_, _ = rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range 100 {
				p.Get(ctx, "a")
			}
			return nil
		})
		_ = auto.StrLen(ctx, "a").Err()
		other.Do(ctx, other.B().Exists().Key("a").Build())
	}
	sub := rdb.Subscribe(ctx, "channel")
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	_ = sub.Close()
	sent, arrived := traffic.sent.Load()-atFirst, calls()-before
	if sent != arrived || sent < 1031 {
		t.Errorf("sent %d, arrived %d", sent, arrived)
	}
}
