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

// pairs is how long each of n pairs of acquire and release took.
func pairs(t *testing.T, locks *core.Locker, n int) []time.Duration {
	t.Helper()
	took := make([]time.Duration, n)
	for i := range n + 5 { // the first ones connect, and load what is loaded once
		began := time.Now()
		x, err := locks.TryAcquire(t.Context(), "pair")
		ok(t, err)
		ok(t, x.Release(t.Context()))
		took[max(0, i-5)] = time.Since(began)
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
	for range n.pairs {
		x, err := locks.TryAcquire(t.Context(), "pair")
		ok(t, err)
		ok(t, x.Release(t.Context()))
	}
	perPair = float64(requests(proxies)-before) / float64(n.pairs)

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

// TestRedlockBesideOneNode has 5 ms on each link.
func TestRedlockBesideOneNode(t *testing.T) { //nolint:paralleltest // it measures
	n := sizes()
	const goal = 1.2
	five, one := overFive(t), onRedis(t)
	var lockers [2]*core.Locker
	for i, b := range []backend{five, one} {
		proxies, via := proxied(t, b.addrs)
		for _, p := range proxies {
			p.SetDelay(2500*time.Microsecond, 2500*time.Microsecond)
		}
		lockers[i] = locker(t, b, via)
	}
	var ratios []float64
	for range n.rounds {
		many, single := median(pairs(t, lockers[0], n.pairs/2+1)), median(pairs(t, lockers[1], n.pairs/2+1))
		ratios = append(ratios, float64(many)/float64(single))
	}
	slices.Sort(ratios)
	if *withFigures {
		verdict := "met"
		if ratios[len(ratios)/2] > goal {
			verdict = "not met"
		}
		fmt.Printf("\nA pair of redlock over 5 nodes, 5 ms on each link, takes %.2f times (%.2f–%.2f) that of one such node; goal: at most %.1f: %s.\n\n",
			ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1], goal, verdict)
	}
}

// locker is one more process's.
func locker(t *testing.T, b backend, via []string) *core.Locker {
	t.Helper()
	locks, err := core.New(b.open(t, via))
	ok(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = locks.Close(ctx)
	})
	return locks
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
