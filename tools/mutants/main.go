// Command mutants breaks the engine and the adapters in small ways, one at a time, and asks whether a test notices:
//
//	mutants [-n 300] [-seed N] [-file PLACES] [-keys FILE] [-light 10s] [-list]
//
// Every condition becomes true, false, and wrong at its bound; every call statement and defer is left out. All mutants
// are compiled once, each behind a switch (package mutant), on an overlay: the tree stays as it is. Each test runs once
// to tell which mutants make a difference in it, and only those tests judge a mutant.
//
// survivors.tsv lists what survives for a reason: function, mutation, reason. A survivor that is not listed is
// a complaint, and so is a listed one that is killed or no longer in the code.
package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const switches = "github.com/holdfast-go/holdfast/internal/mutant"

var (
	//go:embed mutant/mutant.go
	switchSource []byte
	//go:embed survivors.tsv
	survivors []byte

	// Not core/cmd/holdfast: its tests start their own binary, and a mutant did that without end.
	packages = []string{
		"core/internal/call", "core/internal/callctx", "core/internal/claim", "core/internal/clock", "core/internal/contend",
		"core/internal/explore", "core/internal/hold", "core/internal/look", "core/internal/queue", "core/internal/sweep", "core/internal/tasks",
		"core/internal/term", "core/internal/watchdog", "core", "core/fallback", "core/operate", "core/adapter", "core/fence",
		"core/coalesce", "httpmw", "grpcmw", "taskmw",
	}
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("mutants: ")
	n := flag.Int("n", 300, "how many mutants to try; 0 tries all")
	seed := flag.Uint64("seed", uint64(time.Now().Unix()/86400), "which ones; another each day unless given") //nolint:gosec // G115: not negative
	file := flag.String("file", "", "only mutants whose place this regular expression matches")
	keys := flag.String("keys", "", "only the mutants that this file has, as -list prints them")
	light := flag.Duration("light", time.Hour, "leave out tests that take longer")
	list := flag.Bool("list", false, "list the mutants and try none")
	root := flag.String("root", "..", "the repository's folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	b := &bench{root: *root, light: *light}
	complaints, err := b.mutants(ctx, *n, *seed, *file, *keys, *list)
	stop()
	if err != nil {
		log.Fatal(err)
	}
	if complaints > 0 {
		log.Fatalf("%d complaints", complaints)
	}
}

func (b *bench) mutants(ctx context.Context, n int, seed uint64, file, keys string, list bool) (_ int, err error) {
	if b.root, err = filepath.Abs(b.root); err != nil {
		return 0, err
	}
	if b.temp, err = os.MkdirTemp("", "mutants"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(b.temp) //nolint:errcheck // the system cleans up as well
	all, err := b.overlay(packages)
	if err != nil {
		return 0, err
	}
	reasons, complaints := explained(all)
	chosen, err := wanted(all, file, keys)
	if err != nil {
		return 0, err
	}
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: the same mutants for the same seed
	r.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	if n > 0 {
		chosen = chosen[:min(n, len(chosen))]
	}
	fmt.Printf("%d mutants, %d chosen by seed %d\n", len(all), len(chosen), seed)
	if list {
		for _, c := range chosen {
			fmt.Printf("%s\t%s\n", c.place, c.key())
		}
		return complaints, nil
	}
	for _, dir := range needed(chosen) {
		if err := b.build(ctx, dir); err != nil {
			return 0, err
		}
	}
	if err := b.reach(ctx, all); err != nil {
		return 0, err
	}
	twoAtATime(chosen, func(c *change) {
		if ctx.Err() == nil {
			b.try(ctx, c)
			fmt.Printf("%s\t%s\t%s\t%s\t%s\n", c.result, c.place, c.key(), c.killer, reasons[c.key()])
		}
	})
	return complaints + b.leftOut + verdict(chosen, reasons), ctx.Err()
}

// wanted are the mutants at the places that match, of those that the file of keys has, if there is one.
func wanted(all []*change, file, keys string) ([]*change, error) {
	places, err := regexp.Compile(file)
	if err != nil || keys == "" {
		return slices.DeleteFunc(slices.Clone(all), func(c *change) bool { return err == nil && !places.MatchString(c.place) }), err
	}
	named, err := os.ReadFile(keys) //nolint:gosec // G304: a file that the caller names
	return slices.DeleteFunc(slices.Clone(all), func(c *change) bool {
		return !places.MatchString(c.place) || !bytes.Contains(named, []byte("\t"+c.key()+"\n"))
	}), err
}

// verdict prints how many had which end, and returns how many need a test, a reason, or none any more.
func verdict(chosen []*change, reasons map[string]string) int {
	complaints, count := 0, map[string]int{}
	for _, c := range chosen {
		reason := reasons[c.key()]
		noticed := c.result == "killed" || c.result == "hung"
		switch {
		case noticed && reason != "":
			fmt.Printf("killed, but listed as a survivor: %s\n", c.key())
			complaints++
		case !noticed && reason == "":
			complaints++
		case !noticed:
			c.result = "explained"
		}
		count[c.result]++
	}
	fmt.Printf("%d killed, %d hung, %d survived, %d not reached, %d explained\n",
		count["killed"], count["hung"], count["survived"], count["not reached"], count["explained"])
	return complaints
}

// needed are the packages whose tests may judge the chosen mutants: their own, and core and the explorer for what core is made of.
func needed(chosen []*change) []string {
	dirs := map[string]bool{}
	for _, c := range chosen {
		dirs[c.dir] = true
		if strings.HasPrefix(c.dir, "core/internal/") || c.dir == "core/fallback" {
			dirs["core"], dirs["core/internal/explore"] = true, true
		}
	}
	return slices.DeleteFunc(slices.Clone(packages), func(dir string) bool { return !dirs[dir] })
}

// explained reads survivors.tsv, and complains about what is not in the code.
func explained(all []*change) (map[string]string, int) {
	known := map[string]bool{}
	for _, c := range all {
		known[c.key()] = true
	}
	reasons := map[string]string{}
	complaints := 0
	for lines := bufio.NewScanner(bytes.NewReader(survivors)); lines.Scan(); {
		parts := strings.SplitN(lines.Text(), "\t", 3)
		if len(parts) < 3 || strings.HasPrefix(parts[0], "#") {
			continue
		}
		key := parts[0] + "\t" + parts[1]
		if !known[key] {
			fmt.Printf("a survivor that is not in the code: %s\n", key)
			complaints++
		}
		reasons[key] = parts[2]
	}
	return reasons, complaints
}
