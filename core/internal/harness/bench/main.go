// Command bench measures Holdfast beside other lock libraries on Redis, and beside a floor
// that no lock can pass: a bare SET NX and an owner-checked release.
//
// It starts a redis-server of its own. In every scenario the contestants run in interleaved
// rounds, each in fresh processes; figures are medians of the rounds, ratios are of figures of
// the same round. After each round it checks what a lock must do: nobody else was inside, the
// fences grew, no lock is left at the server. What Holdfast breaks of that ends the program with
// status 1, what a peer breaks stands in the table. Goals that are missed are printed.
//
// With -scale it measures how the cost of Holdfast alone grows: see sweep.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

var flagAgainst = flag.String("against", "", "compare Holdfast with itself: this `program` is the same, built from another commit; see tools/bench-against.sh")

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	if os.Getenv(workerEnv) != "" {
		if err := work(context.Background(), os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	b := &bench{say: func(progress string) { log.Print(progress) }}
	flag.IntVar(&b.rounds, "rounds", 0, "interleaved rounds; 5 unless told, and 1 with -scale")
	flag.DurationVar(&b.length, "time", 0, "length of one contestant's `round`, 500 ms unless told; some scenarios take a multiple")
	rtt := flag.Duration("rtt", 0, "put a `round trip` of so much between the contestants and the server")
	flag.BoolVar(&b.quick, "quick", false, "one short round with small numbers: a proof that everything runs, no figures")
	scale := flag.Bool("scale", false, "measure how the cost of Holdfast grows, instead of comparing it; 5 minutes")
	only := flag.String("only", "", "comma-separated `scenarios`; default: all. There are "+strings.Join(scenarioNames(), ", ")+
		"; with -scale "+strings.Join(sweepNames(), ", "))
	flag.Parse()
	b.defaults(*scale)
	all, grow, err := choose(*only, *scale)
	if err != nil {
		log.Fatal(err)
	}
	if *flagAgainst != "" {
		all = against(all)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	b.server, err = startServer(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer b.server.stop()
	if *rtt > 0 {
		f, err := startFar(b.server.addr, *rtt)
		if err != nil {
			log.Fatal(err)
		}
		defer f.stop()
		b.addr = f.listener.Addr().String()
	}
	var sound bool
	if *scale {
		sound, err = b.showSweeps(ctx, grow, os.Stdout)
	} else {
		sound, err = b.show(ctx, all, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
	if !sound {
		b.server.stop()
		log.Fatal("Holdfast has broken a promise: see the column of faults")
	}
}

// show runs the scenarios and prints their tables.
func (b *bench) show(ctx context.Context, all []scenario, w io.Writer) (sound bool, err error) {
	head := fmt.Sprintf("%s; medians (quartiles) of %d interleaved rounds of %s.\n\n%s",
		b.where(ctx), b.rounds, b.length.Round(time.Millisecond), legend(all))
	if _, err := io.WriteString(w, head); err != nil {
		return false, err
	}
	return b.run(ctx, all, func(o outcome) error {
		_, err := io.WriteString(w, o.table())
		return err
	})
}

// where is on what this is measured.
func (b *bench) where(ctx context.Context) string {
	where := fmt.Sprintf("%s, %s/%s, %d cores, redis-server %s on loopback",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), b.server.version(ctx))
	if b.addr != "" {
		where += ", PING " + b.ping(ctx).Round(10*time.Microsecond).String()
	}
	return where
}

// ping is the median round trip to where the workers find the server.
func (b *bench) ping(ctx context.Context) time.Duration {
	rdb := client(b.addr, newTraffic())
	defer func() { _ = rdb.Close() }()
	var all []time.Duration
	for range 101 {
		began := time.Now()
		_ = rdb.Ping(ctx).Err()
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// defaults are the rounds, and their length, that nobody has asked for.
func (b *bench) defaults(scale bool) {
	switch {
	case b.quick:
		b.rounds, b.length = 1, 100*time.Millisecond
	case scale:
		b.rounds, b.length = cmp.Or(b.rounds, 1), cmp.Or(b.length, time.Second)
	default:
		b.rounds, b.length = cmp.Or(b.rounds, 5), cmp.Or(b.length, 500*time.Millisecond)
	}
}

func scenarioNames() (names []string) {
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

func sweepNames() (names []string) {
	for _, s := range sweeps() {
		names = append(names, s.name)
	}
	return names
}

// choose finds the scenarios that a flag names, or the sweeps.
func choose(only string, scale bool) (all []scenario, grow []sweep, err error) {
	if scale {
		grow, err = named(sweeps(), sweepNames(), only)
	} else {
		all, err = named(scenarios(), scenarioNames(), only)
	}
	return all, grow, err
}

func named[T any](all []T, names []string, only string) (chosen []T, err error) {
	if only == "" {
		return all, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		i := slices.Index(names, strings.TrimSpace(name))
		if i < 0 {
			return nil, fmt.Errorf("-only: no scenario %q; there are %s", name, strings.Join(names, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
