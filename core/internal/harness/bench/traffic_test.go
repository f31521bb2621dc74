package main

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func TestCommandsAreCountedHoweverTheWritesCutThem(t *testing.T) {
	t.Parallel()
	stream := []byte("*3\r\n$3\r\nSET\r\n$1\r\n*\r\n$13\r\n$3\r\nGET\r\n$1\r\n\r\n" +
		"*1\r\n$4\r\nPING\r\n" +
		"*2\r\n$3\r\nget\r\n$0\r\n\r\n" +
		"*2\r\n$3\r\nGet\r\n$1\r\nx\r\n")
	want := map[string]int64{"set": 1, "ping": 1, "get": 2}
	for size := 1; size <= len(stream); size++ {
		traffic := newTraffic()
		m := meter{traffic: traffic}
		for rest := stream; len(rest) > 0; {
			n := min(size, len(rest))
			m.feed(rest[:n])
			rest = rest[n:]
		}
		if got := traffic.counts(); !maps.Equal(got, want) {
			t.Fatalf("writes of %d bytes: %v", size, got)
		}
	}
}

func TestOnlyWhatWasSentAfterAReadingCounts(t *testing.T) {
	t.Parallel()
	traffic := newTraffic()
	traffic.counter("set").Add(2)
	before := traffic.counts()
	traffic.counter("set").Add(3)
	traffic.counter("get").Add(1)
	if got := traffic.since(before); !maps.Equal(got, map[string]int64{"set": 3, "get": 1}) {
		t.Error(got)
	}
}

// The server counts what scripts do like what clients send: these clients send commands that
// no script uses, so both counts are the same.
func TestTheCountIsTheServersOfEveryClient(t *testing.T) {
	t.Parallel()
	b := quickBench(t)
	ctx := t.Context()
	traffic := newTraffic()
	rdb := client(b.server.addr, traffic)
	t.Cleanup(func() { _ = rdb.Close() })
	auto, err := rdb.AutoPipeline()
	backendtest.OK(t, err)
	other, err := newRueidis(t, b.server.addr, traffic)
	backendtest.OK(t, err)
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
		rdb.Eval(ctx, "return redis.call('GETRANGE', KEYS[1], 0, 1)", []string{"a"})
	}
	sub := rdb.Subscribe(ctx, "channel")
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	_ = sub.Close()
	usage, err := b.server.usage(ctx)
	backendtest.OK(t, err)
	sent := traffic.counts()
	for name, want := range map[string]int64{"set": 10, "get": 1000, "strlen": 10, "exists": 10, "eval": 10, "subscribe": 1} {
		if sent[name] != want || int64(usage[name].calls) != want {
			t.Errorf("%s: sent %d, arrived %v, want %d", name, sent[name], usage[name].calls, want)
		}
	}
	if sent["getrange"] != 0 || usage["getrange"].calls != 10 {
		t.Errorf("inside a script: sent %d, counted %v", sent["getrange"], usage["getrange"].calls)
	}
}

func newRueidis(t *testing.T, addr string, traffic *traffic) (rueidis.Client, error) {
	t.Helper()
	l, err := newRueidislock("", false).open(addr, traffic)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = l.close(context.Background()) })
	return l.(*rueidislockLocker).locks.Client(), nil
}

func TestServerTimeIsThatOfCommandsFromClients(t *testing.T) {
	t.Parallel()
	before := map[string]usage{"evalsha": {10, 100}, "get": {5, 50}}
	after := map[string]usage{"evalsha": {20, 300}, "get": {25, 90}, "del": {10, 70}}
	for _, c := range []struct {
		sent map[string]int64
		want time.Duration
	}{
		{map[string]int64{"evalsha": 10}, 200 * time.Microsecond},
		{map[string]int64{"evalsha": 10, "get": 5}, 210 * time.Microsecond}, // of 20 calls in 40 µs
		{map[string]int64{"get": 30}, 40 * time.Microsecond},                // some came before the second reading
		{map[string]int64{"subscribe": 1}, 0},
		{nil, 0},
	} {
		if got := serverTime(before, after, c.sent); got != c.want {
			t.Errorf("%v: %s, want %s", c.sent, got, c.want)
		}
	}
}
