// Holdfast shows who holds which lock on a Redis server and who waits for it, and takes a
// lock away from a holder whom nothing else stops:
//
//	holdfast ls [prefix]             a table of what is held
//	holdfast ls -json [prefix]       one JSON object a line
//	holdfast watch [prefix]          the table, live
//	holdfast release -fence N name   frees the name, if it is held with exactly that fence
//	holdfast release -handle H name  takes it from the holder that is shown with that handle
//
// Flags in front of the command say where:
//
//	-redis address    host:port, or a URL: redis://user:password@host:port/db, rediss:// for TLS
//	-prefix prefix    of the keys, as in redislock.WithPrefix
//	-cluster          it is a Redis Cluster
//
// Their defaults are 127.0.0.1:6379 and holdfast:, or what the environment says in
// HOLDFAST_REDIS and HOLDFAST_PREFIX. A password belongs there, or into
// HOLDFAST_REDIS_PASSWORD: other users of the machine see what is on a command line.
//
// The table has a row for each name that is held, and one for each of those who hold it together: the
// holder's label; its fence, which the server learns by the first renewal, a third of the TTL after
// the grant; its handle, which stands for it from the grant on and is no secret; what remains of the
// TTL, which goes up again with each renewal; and how long each process in line has waited, in
// parentheses if nothing was heard of it lately. Where the output is no terminal, it is the
// same without a header, cut off nowhere, and with tabs between the columns.
//
// A release by a fence that several readers have is refused: each has a handle of its own. It tells the next in line. The holder hears of it by its next renewal and works on
// until then, so this is for a holder who does not end by itself. Who released what, when, and
// what came of it, is a line on the standard error output.
//
// The exit status is 0; 1 if the server did not answer as it should; 2 for a command line that
// makes no sense; and 3 for a release of what is not held with that fence or handle.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/holdfast-go/holdfast/core"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	p := program{out: os.Stdout, err: os.Stderr, terminal: isTerminal(os.Stdout), getenv: os.Getenv}
	os.Exit(p.run(ctx, os.Args[1:]))
}

// The exit statuses.
const (
	done = iota
	failed
	misused
	notReleased
)

// program is the command and its surroundings.
type program struct {
	out, err io.Writer
	terminal bool // that is what out is
	getenv   func(string) string
}

const usage = `usage: holdfast [-redis address] [-prefix prefix] [-cluster] command

  ls [-json] [prefix]         who holds what, and who waits
  watch [-every 1s] [-rows 20] [prefix]
                              the same, live
  release -fence N name       take the name from whoever holds it with that fence
  release -handle H name      take the name from the holder with that handle

flags:
`

// errUsage has been said already.
var errUsage = errors.New("usage")

func (p *program) run(ctx context.Context, args []string) int {
	flags := p.flags("holdfast")
	flags.Usage = func() {
		_, _ = io.WriteString(p.err, usage) // nowhere else to complain
		flags.PrintDefaults()
	}
	var at place
	at.define(flags, p.getenv)
	if err := flags.Parse(args); err != nil {
		return p.misuse(err)
	}
	command, ok := map[string]func(context.Context, place, *flag.FlagSet, []string) (int, error){
		"ls": p.list, "watch": p.watch, "release": p.release,
	}[flags.Arg(0)]
	if !ok {
		if flags.NArg() > 0 {
			p.complain("unknown command %q", flags.Arg(0))
		}
		flags.Usage()
		return misused
	}
	status, err := command(ctx, at, p.flags(flags.Arg(0)), flags.Args()[1:])
	switch {
	case errors.Is(err, errUsage), errors.Is(err, flag.ErrHelp):
		return p.misuse(err)
	case err != nil:
		p.complain("%s", strings.TrimPrefix(clean(err.Error()), "holdfast: "))
	}
	switch {
	case errors.Is(err, core.ErrInvalid):
		return misused
	case err != nil:
		return failed
	}
	return status
}

func (p *program) flags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(p.err)
	return flags
}

func (p *program) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(p.err, "holdfast: "+format+"\n", args...) // nowhere else to complain
}

func (p *program) misuse(err error) int {
	if errors.Is(err, flag.ErrHelp) {
		return done
	}
	return misused
}

// arguments reads the rest of a command line: flags, and then at most so many words.
func (p *program) arguments(flags *flag.FlagSet, args []string, most int) error {
	if err := flags.Parse(args); err != nil {
		return errors.Join(errUsage, err) // said by Parse
	}
	if flags.NArg() > most {
		p.complain("%s: unexpected argument %q", flags.Name(), flags.Arg(most))
		return errUsage
	}
	return nil
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
