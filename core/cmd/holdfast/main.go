// Holdfast shows who holds which lock on a Redis server and who waits for it. It can also take a lock
// away from a holder that nothing else stops:
//
//	holdfast ls [prefix]             a table of what is held
//	holdfast ls -json [prefix]       one JSON object a line
//	holdfast watch [prefix]          the table, live
//	holdfast release -fence N name   frees the name, if it is held with exactly that fence
//	holdfast release -handle H name  takes it from the holder that is shown with that handle
//
// Flags before the command say where the locks are:
//
//	-redis address    host:port, or a URL: redis://user:password@host:port/db, rediss:// for TLS
//	-prefix prefix    of the keys, as in redislock.WithPrefix
//	-cluster          it is a Redis Cluster
//
// The defaults are 127.0.0.1:6379 and holdfast:, or the values of the environment variables
// HOLDFAST_REDIS and HOLDFAST_PREFIX. Put a password into HOLDFAST_REDIS or HOLDFAST_REDIS_PASSWORD,
// because other users of the machine can see the command line.
//
// The table has a row for each held name. If several holders share a name, each has a row. The
// columns are:
//
//   - The holder's label.
//   - Its fence. The server learns it with the first renewal, a third of the TTL after the grant.
//   - Its handle. It identifies the holder from the grant on, and is no secret.
//   - The rest of the TTL, which goes up again with each renewal.
//   - How long each process in the queue has waited. It is in parentheses if the process has not been
//     heard of lately.
//
// If the output is not a terminal, the table has no header, is never cut off, and has tabs between
// the columns.
//
// A release by a fence that several readers have is refused. Use the handle then: each reader has a
// different one. A release notifies the next waiter. The holder learns of it with its next renewal,
// and works on until then. So use this for a holder that does not stop by itself. For each release, a
// line on standard error says who released what, when, and with which result.
//
// The exit status is 0 for success. It is 1 if the server did not answer as expected, 2 for an
// invalid command line, and 3 if nothing is held with that fence or handle.
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
