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

	"github.com/holdfast-go/holdfast/core"
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
func (p *program) watch(ctx context.Context, at place, flags *flag.FlagSet, args []string) (int, error) {
	every := flags.Duration("every", time.Second, "how often to look")
	most := flags.Int("rows", 20, "how many names to show")
	if err := p.arguments(flags, args, 1); err != nil {
		return misused, err
	}
	if *every < 100*time.Millisecond || *most < 1 {
		p.complain("watch: -every is at least 100ms, -rows at least 1")
		return misused, errUsage
	}
	if !p.terminal {
		p.complain("watch needs a terminal; ls is for scripts")
		return misused, errUsage
	}
	locks, closeAll, err := at.open()
	if err != nil {
		return failed, err
	}
	defer closeAll()
	if _, err := io.WriteString(p.out, enter); err != nil {
		return failed, err
	}
	defer io.WriteString(p.out, leave) //nolint:errcheck // the end
	tick := time.NewTicker(*every)
	defer tick.Stop()
	for {
		infos, err := collect(ctx, locks, flags.Arg(0))
		if ctx.Err() != nil {
			return done, nil
		}
		if _, err := io.WriteString(p.out, screen(at.prefix+flags.Arg(0), infos, *most, time.Now(), err)); err != nil {
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
func screen(prefix string, infos []core.LeaseInfo, most int, now time.Time, err error) string {
	var b strings.Builder
	b.WriteString(now.Format(time.TimeOnly) + "  " + clean(prefix) + "*: ")
	if err != nil {
		b.WriteString("no answer\n\n" + clean(err.Error()) + "\n")
	} else {
		waiting := 0
		for _, info := range infos {
			waiting += len(info.Line)
		}
		slices.SortStableFunc(infos, func(a, b core.LeaseInfo) int { return cmp.Compare(len(b.Line), len(a.Line)) })
		fmt.Fprintf(&b, "%d held, %d in line\n\n", len(infos), waiting)
		_ = writeTable(&b, infos[:min(len(infos), most)]) // a Builder takes everything
	}
	if more := len(infos) - most; more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	return home + strings.ReplaceAll(b.String(), "\n", wipe+"\n") + blank
}
