// Package bench measures Holdfast beside other lock libraries on Redis, and beside a floor that no lock can pass: a bare SET NX
// and an owner-checked release.
//
//	make bench
//	go test -run '^TestBench$' . -args -figures -only pair,handover
//
// In every scenario the contestants run in interleaved rounds, each in fresh processes; figures are medians of the rounds, ratios
// are of figures of the same round. A call of Holdfast that fails, fails the test; one of a peer stands in the table. Whether a
// lock excludes others is for core's combinations and chaos.
//
// With -scale it measures how the cost of Holdfast alone grows. Without -figures everything runs once, with small numbers: a proof
// that it runs.
package bench

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

// bench is one run.
type bench struct {
	tb      testing.TB
	server  *server
	addr    string // at which workers find it, if it is far away
	rounds  int
	length  time.Duration // of one contestant's round; some scenarios take a multiple
	quick   bool          // small numbers
	against string        // program of this kind, of another commit: see beforeName

	before float64 // memory of the empty server
	idle   float64 // part of a core that the server uses when nobody asks it for anything
}

// rest finds out what the server uses by itself.
func (b *bench) rest() {
	used, began := b.server.cpu(), time.Now()
	time.Sleep(4 * b.length)
	b.idle = b.server.share(used, began)
}

// result is what a row of a table has shown.
type result struct {
	row
	rounds [][]float64 // by the scenario's columns; nil for a round that failed
	faults faults
}

// race runs the rows of a scenario in interleaved rounds: what disturbs the machine for a while disturbs all of them. Each round
// begins with another one.
func (b *bench) race(s scenario) []result {
	results := make([]result, len(s.rows))
	for i, r := range s.rows {
		if b.quick {
			r.size.N, r.size.Members = min(r.size.N, 100), min(r.size.Members, 20)
		}
		results[i].row = r
	}
	for round := range b.rounds {
		for i := range results {
			r := &results[(i+round)%len(results)]
			figures, faults, err := b.once(s, r.row)
			if err != nil {
				faults.failed(err)
			}
			r.rounds = append(r.rounds, figures)
			r.faults.add(faults)
		}
	}
	return results
}

// once is one contestant's round, on an empty server and in processes of its own.
func (b *bench) once(s scenario, row row) ([]float64, faults, error) {
	b.server.empty()
	b.before = b.server.memory()
	contestant, _ := contestantNamed(row.contestant)
	r := run{size: row.size, length: time.Duration(s.length * float64(b.length))}
	if r.length == 0 {
		r.length = contestant.renewEvery
	}
	if b.quick {
		r.length = b.length
	}
	ctx, cancel := context.WithTimeout(b.tb.Context(), r.length+10*time.Minute)
	defer cancel()
	c := hire(ctx, b.against, task{
		Scenario: s.name, Contestant: row.contestant, Addr: cmp.Or(b.addr, b.server.addr), Section: filepath.Join(b.tb.TempDir(), "place"), Length: r.length, Size: row.size,
	})
	b.lead(c, &r)
	if c.err != nil {
		cancel() // those who still run are told nothing more
	}
	if c.dismiss(); c.err != nil {
		return nil, faults{}, c.err
	}
	figures := make([]float64, len(s.columns))
	for i, column := range s.columns {
		figures[i] = column.of(&r)
	}
	return figures, r.faults, nil
}

// lead takes a crew through its steps: prepare, measure, finish, report.
func (b *bench) lead(c *crew, r *run) {
	c.await()
	start := monotonic() + 5*time.Millisecond // time for everybody to hear of it
	c.proceed(start)
	sleepUntil(start)
	used, began := b.server.cpu(), time.Now()
	sleepUntil(start + r.length)
	r.cpu = time.Duration(max(0, b.server.share(used, began)-b.idle) * float64(r.length))
	r.grown = b.server.memory() - b.before
	for range 2 { // after measure, after finish
		c.await()
		c.proceed(0)
	}
	r.report = c.reports()
}

// sound says whether Holdfast kept its promises.
func sound(results []result) bool {
	return !slices.ContainsFunc(results, func(r result) bool {
		c, _ := contestantNamed(r.contestant)
		return !c.peer && r.faults != faults{}
	})
}

// where is on what this is measured.
func (b *bench) where() string {
	where := fmt.Sprintf("%s, %s/%s, %d cores, redis-server %s on loopback",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), b.server.info("server")["redis_version"])
	if b.addr != "" {
		where += ", PING " + b.ping().Round(10*time.Microsecond).String()
	}
	return fmt.Sprintf("%s; medians (quartiles) of %d interleaved rounds of %s.\n", where, b.rounds, b.length)
}

// ping is the median round trip to where the workers find the server.
func (b *bench) ping() time.Duration {
	rdb := client(b.addr, new(traffic))
	defer func() { _ = rdb.Close() }()
	var all []time.Duration
	for range 101 {
		began := time.Now()
		_ = rdb.Ping(b.tb.Context()).Err()
		all = append(all, time.Since(began))
	}
	return percentile(sorted(all), 0.5)
}
