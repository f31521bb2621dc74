package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// sweep is a scenario at sizes that grow, each ten times as large as the one before, more or less.
type sweep struct {
	name, title, about string
	what               string // is counted by the sizes
	sizes              []size
	columns            []column
	scenario           func(z size) scenario
}

// size is one of a sweep's.
type size struct{ n, by int }

// sizes are n for each of those lines.
func sizes(by int, n ...int) (all []size) {
	for _, n := range n {
		all = append(all, size{n: n, by: by})
	}
	return all
}

func (s sweep) scenarios() (all []scenario) {
	for _, z := range s.sizes {
		each := s.scenario(z)
		each.name = fmt.Sprintf("%s-%d-%d", s.name, z.n, z.by)
		each.contestants = ours
		all = append(all, each)
	}
	return all
}

func scaleScenarios() (all []scenario) {
	for _, w := range sweeps() {
		all = append(all, w.scenarios()...)
	}
	return all
}

// grown is a size's outcome.
type grown struct {
	size
	result
}

// sweep runs a scenario at all its sizes, and prints its table.
func (b *bench) sweep(ctx context.Context, s sweep, w io.Writer) (sound bool, err error) {
	var rows []grown
	for i, each := range s.scenarios() {
		results, err := b.race(ctx, each)
		if err != nil {
			return false, err
		}
		rows = append(rows, grown{s.sizes[i], results[0]})
	}
	_, err = io.WriteString(w, s.table(rows))
	return !slices.ContainsFunc(rows, func(r grown) bool { return !r.Faults.none() }), err
}

// table is what came out, in Markdown.
func (s sweep) table(rows []grown) string {
	w := &strings.Builder{}
	fmt.Fprintf(w, "\n### %s (`%s`)\n\n%s\n\n| %s | processes |", s.title, s.name, s.about, s.what)
	for _, c := range s.columns {
		fmt.Fprintf(w, " %s |", c.title)
	}
	fmt.Fprintf(w, " faults |\n|%s---|\n", strings.Repeat("---:|", len(s.columns)+2))
	for _, r := range rows {
		fmt.Fprintf(w, "| %d | %d |", r.n, r.by)
		for _, c := range s.columns {
			fmt.Fprintf(w, " %s |", number(c.format, spreadOf(r.values(c.figure)).Median))
		}
		fmt.Fprintf(w, " %s |\n", &r.Faults)
	}
	return w.String()
}

// showSweeps runs the sweeps and prints their tables.
func (b *bench) showSweeps(ctx context.Context, all []sweep, w io.Writer) (sound bool, err error) {
	remove, err := b.folder()
	if err != nil {
		return false, err
	}
	defer remove()
	_, err = fmt.Fprintf(w, "%s; medians of %d runs.\n", b.where(ctx), b.rounds)
	if err == nil {
		b.idle, err = b.rest(ctx)
	}
	sound = true
	for _, s := range all {
		if err != nil {
			break
		}
		var ok bool
		ok, err = b.sweep(ctx, s, w)
		sound = sound && ok
	}
	return sound, err
}

// rest is the part of a core that a server uses which nobody asks for anything.
func (b *bench) rest(ctx context.Context) (float64, error) {
	used, err := b.server.cpu(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	time.Sleep(4 * b.length)
	return b.server.share(ctx, used, began)
}

// seconds is a length in units of -time, which is a second in a sweep.
func seconds(d time.Duration) float64 { return d.Seconds() }
