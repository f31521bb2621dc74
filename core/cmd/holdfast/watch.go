package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/look"
	"github.com/holdfast-go/holdfast/core/operate"
)

// What terminals understand.
const (
	enter = "\x1b[?1049h\x1b[?25l" // another screen, no cursor
	leave = "\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	wipe  = "\x1b[K" // the rest of the line
	blank = "\x1b[J" // the rest of the screen
)

// watch is the command of that name: it ends with ctx.
func (p *program) watch(ctx context.Context, at *place, flags *flag.FlagSet, args []string) (int, error) {
	every := time.Second
	durationFlag(flags, &every, "every", "how often to look")
	most := flags.Int("rows", 20, "how many names to show")
	if err := p.arguments(flags, args, maxFilters); err != nil {
		return misused, err
	}
	if every < 100*time.Millisecond || *most < 1 {
		return misused, p.misuse("watch: -every is at least 100ms, -rows at least 1")
	}
	if !p.terminal {
		return misused, p.misuse("watch needs a terminal; ls is for scripts")
	}
	s, err := at.open(ctx)
	if err != nil {
		return failed, err
	}
	defer s.close(ctx)
	if _, err := io.WriteString(p.out, enter); err != nil {
		return failed, err
	}
	defer io.WriteString(p.out, leave) //nolint:errcheck // the end
	filter := look.Filter(flags.Args())
	looker := look.New(operate.New(s.locks), filter.Prefix(), filter.Keep)
	ctx, cancel := context.WithCancel(ctx)
	defer looker.Close()
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	where := clean(strings.TrimSpace(s.Place + " " + s.Prefix + " " + strings.Join(filter, " ")))
	for {
		picture, err := looker.Look(ctx)
		if ctx.Err() != nil {
			return done, nil
		}
		if _, err := io.WriteString(p.out, screen(where, picture, *most, time.Now(), err)); err != nil {
			return failed, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return done, nil
		}
	}
}

// screen shows the longest lines first, or why nothing is known.
func screen(where string, p look.Picture, most int, now time.Time, err error) string {
	var b strings.Builder
	b.WriteString(now.Format(time.TimeOnly) + "  " + where + ": ")
	infos := p.Infos
	if err != nil {
		b.WriteString("no answer\n\n" + clean(err.Error()) + "\n")
		return home + strings.ReplaceAll(b.String(), "\n", wipe+"\n") + blank
	}
	waiting := 0
	for _, info := range infos {
		waiting += len(info.Line)
	}
	slices.SortStableFunc(infos, func(a, b inspect.LeaseInfo) int { return cmp.Compare(len(b.Line), len(a.Line)) })
	fmt.Fprintf(&b, "%d held, %d in line\n\n", len(infos), waiting)
	_ = writeTable(&b, infos[:min(len(infos), most)], false) // a Builder takes everything
	if more := len(infos) - most; more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	if !p.Whole {
		b.WriteString("still searching for names\n")
	} else if p.Every > 2*time.Second {
		fmt.Fprintf(&b, "new names show after up to %s: the database has many keys\n", human(p.Every))
	}
	return home + strings.ReplaceAll(b.String(), "\n", wipe+"\n") + blank
}
