// Command bench prints what a lock costs, as ratios to a floor that is measured in the same
// run: a bare SET NX and an owner-checked release through the same kind of client, without
// fence, watchdog or line. Rounds of all contestants are interleaved, and the figure is the
// median of the rounds' ratios, since the machines it runs on are shared and noisy.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"slices"
	"time"
)

func main() {
	addr := flag.String("redis", "", "address of a Redis to use; default: start redis-server")
	rounds := flag.Int("rounds", 21, "interleaved rounds")
	round := flag.Duration("round", 100*time.Millisecond, "length of one contestant's round")
	flag.Parse()
	ctx := context.Background()
	if *addr == "" {
		server, err := startRedis()
		if err != nil {
			log.Fatal(err)
		}
		defer server.stop()
		*addr = server.addr
	}
	uncontended(ctx, *addr, *rounds, *round)
	held(ctx, *addr)
}

// contestant does one unit of work.
type contestant struct {
	name string
	pair func(ctx context.Context) error
}

// race runs the contestants in turns and returns each one's rate in each round.
func race(ctx context.Context, contestants []contestant, rounds int, length time.Duration) [][]float64 {
	rates := make([][]float64, len(contestants))
	for r := range rounds + 1 {
		for i, c := range contestants {
			n, begin := 0, time.Now()
			for time.Since(begin) < length {
				if err := c.pair(ctx); err != nil {
					log.Fatalf("%s: %v", c.name, err)
				}
				n++
			}
			if r > 0 { // the first round warms up
				rates[i] = append(rates[i], float64(n)/time.Since(begin).Seconds())
			}
		}
	}
	return rates
}

// ratios returns the quartiles of a's rounds divided by b's.
func ratios(a, b []float64) (low, median, high float64) {
	r := make([]float64, len(a))
	for i := range a {
		r[i] = a[i] / b[i]
	}
	slices.Sort(r)
	return r[len(r)/4], r[len(r)/2], r[len(r)*3/4]
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func printRace(title string, contestants []contestant, rates [][]float64, unit string) {
	fmt.Printf("\n%s\n\n", title)
	fmt.Printf("| contestant | %s | ratio to floor (median, quartiles) |\n|---|---:|---:|\n", unit)
	for i, c := range contestants {
		low, mid, high := ratios(rates[i], rates[0])
		fmt.Printf("| %s | %.0f | %.2f (%.2f–%.2f) |\n", c.name, median(rates[i]), mid, low, high)
	}
}
