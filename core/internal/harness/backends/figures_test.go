package backends

import (
	"context"
	"flag"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

var withFigures = flag.Bool("figures", false, "measure, and print tables; without it everything runs once, and says nothing")

// size is how much is measured.
type size struct {
	rounds, pairs, handovers, waiters int
	settle, waiting                   time.Duration
}

func sizes() size {
	if *withFigures {
		return size{rounds: 5, pairs: 100, handovers: 15, waiters: 100, settle: 2 * time.Second, waiting: 5 * time.Second}
	}
	return size{rounds: 1, pairs: 2, handovers: 1, waiters: 3, settle: 50 * time.Millisecond, waiting: 50 * time.Millisecond}
}

// figures are what was measured of one backend.
type figures struct {
	requests, waiting float64
	pairs, handovers  []time.Duration
}

func TestFigures(t *testing.T) { //nolint:paralleltest // it measures
	n := sizes()
	services := all(t)
	got := make([]figures, len(services))
	for range n.rounds { // what disturbs the machine for a while disturbs all
		for i, b := range services {
			got[i].pairs = append(got[i].pairs, pairs(t, locker(t, b, b.addrs), n.pairs)...)
		}
	}
	for i, b := range services {
		got[i].handovers = handovers(t, b, n.handovers)
		if len(b.addrs) > 0 {
			got[i].requests, got[i].waiting = wire(t, b, n)
		}
	}
	if *withFigures {
		show(services, got)
	}
}

// warmUp is how many pairs connect, and load what is loaded once.
const warmUp = 5

// pairs is how long each of n pairs of acquire and release took.
func pairs(t *testing.T, locks *core.Locker, n int) []time.Duration {
	t.Helper()
	took := make([]time.Duration, n)
	for i := range n + warmUp {
		began := time.Now()
		x, err := locks.TryAcquire(t.Context(), "pair")
		ok(t, err)
		ok(t, x.Release(t.Context()))
		took[max(0, i-warmUp)] = time.Since(began)
	}
	return took
}

// handovers is how long each of n names took from the call of Release to another process's
// return from Acquire, which had been waiting for a while.
func handovers(t *testing.T, b backend, n int) []time.Duration {
	t.Helper()
	mine, theirs := locker(t, b, b.addrs), locker(t, b, b.addrs)
	pairs(t, theirs, 1)
	took := make([]time.Duration, n)
	for i := range n {
		x, err := mine.Acquire(t.Context(), "handover")
		ok(t, err)
		got := make(chan *core.Lease)
		go func() {
			y, err := theirs.Acquire(t.Context(), "handover")
			if err != nil {
				t.Error(err)
			}
			got <- y
		}()
		time.Sleep(150*time.Millisecond + time.Duration(i)*7*time.Millisecond) // not in step with who polls
		began := time.Now()
		ok(t, x.Release(t.Context()))
		y := <-got
		took[i] = time.Since(began)
		if y == nil {
			t.FailNow()
		}
		ok(t, y.Release(t.Context()))
	}
	return took
}

// wire counts requests: of a pair, and for each second in which a process waits.
func wire(t *testing.T, b backend, n size) (perPair, perSecond float64) {
	t.Helper()
	proxies, via := proxied(t, b.addrs)
	locks := locker(t, b, via)
	pairs(t, locks, 1)
	before := requests(proxies)
	pairs(t, locks, n.pairs)
	perPair = float64(requests(proxies)-before) / float64(n.pairs+warmUp)

	x, err := locker(t, b, b.addrs).Acquire(t.Context(), "waited-for")
	ok(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range n.waiters {
		wg.Go(func() { _, _ = locks.Acquire(ctx, "waited-for") }) // until ctx ends
	}
	time.Sleep(n.settle)
	before = requests(proxies)
	time.Sleep(n.waiting)
	perSecond = float64(requests(proxies)-before) / n.waiting.Seconds()
	cancel()
	wg.Wait()
	ok(t, x.Release(t.Context()))
	return perPair, perSecond
}

// locker is one more process's.
func locker(t *testing.T, b backend, via []string) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, b.open(t, via), 10*time.Second)
}

func proxied(t *testing.T, addrs []string) (proxies []*faultproxy.Proxy, via []string) {
	t.Helper()
	for _, addr := range addrs {
		p := faultproxy.New(t, addr)
		proxies, via = append(proxies, p), append(via, p.Addr())
	}
	return proxies, via
}

func dialer(instead map[string]string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, instead[addr])
	}
}

func requests(proxies []*faultproxy.Proxy) (n int) {
	for _, p := range proxies {
		n += p.Requests()
	}
	return n
}

func median(took []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[len(sorted)/2]
}

func show(services []backend, got []figures) {
	fmt.Println("\n| backend | requests per pair | pair, p50 ms | pair, p99 ms | hand-over, p50 ms | slowest, ms | requests per waiting second |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|")
	for i, b := range services {
		f := got[i]
		sent, waited := "–", "–"
		if len(b.addrs) > 0 {
			sent, waited = fmt.Sprintf("%.1f", f.requests), fmt.Sprintf("%.1f", f.waiting)
		}
		all := slices.Sorted(slices.Values(f.pairs))
		fmt.Printf("| %s | %s | %.2f | %.2f | %.1f | %.1f | %s |\n", b.name, sent,
			ms(median(all)), ms(all[len(all)*99/100]), ms(median(f.handovers)), ms(slices.Max(f.handovers)), waited)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
