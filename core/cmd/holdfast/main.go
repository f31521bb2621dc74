// Holdfast runs a command under a lock that a fleet shares, and shows who holds what:
//
//	holdfast run [flags] NAME -- command…   holds the name while the command runs: flock for a fleet
//	holdfast ls [filter…]                   who holds what, and who waits
//	holdfast watch [filter…]                the same, live
//	holdfast inspect NAME                   all that is known of one name
//	holdfast release -handle H NAME         takes a name from its holder
//	holdfast markers [filter…]              what counts as done, and for how long
//	holdfast markers -remove NAME           lets it be done again
//	holdfast ready                          asks the lock service once, and says why not
//	holdfast ui                             the page of package inspector, at 127.0.0.1:8420
//	holdfast schema                         the SQL that makes the table, for databases
//	holdfast version
//
// # Where the locks are
//
// A URL says it, in the environment variable HOLDFAST_URL or in the flag -url, before or behind the
// command. There is no default: each machine would lock for itself.
//
//	redis://[user:password@]host:port[/database]    rediss:// with TLS, unix:///path for a socket
//	redis+sentinel://host:port,host:port/master     the name of the master that the Sentinels watch
//	redis+cluster://host:port,host:port             some nodes of a Cluster
//	redlock://host:port,host:port,host:port         all nodes of a Redlock, with the same password; redlocks:// with TLS
//	postgres://user:password@host:port/database     as psql takes it
//	mysql://user:password@host:port/database        MySQL or MariaDB
//	sqlite:path                                     the processes of one machine
//	etcd://host:port,host:port                      etcds:// with TLS
//	zk://host:port,host:port[/root]                 ZooKeeper
//	nats://host:port,host:port[/bucket]             nats+tls:// with TLS
//	memcached://host:port,host:port                 best effort: see package memcachedlock
//
// Behind a question mark are prefix=… (what the keys begin with; not for SQL, ZooKeeper and NATS), table=… for SQL, both as in the programs
// which share the locks, replicas=… and servercheck=off for Redis, fence=on for redlock, cacert=, cert= and key= for etcds and nats+tls, creds= for NATS, and
// the parameters of the client library. Other users of the machine can see a command line: put a
// password into HOLDFAST_URL, or into HOLDFAST_PASSWORD, where nothing is percent-encoded.
//
// # Run
//
//	holdfast run -wait 0 nightly-report -- /usr/local/bin/report
//
// The command has this process's standard input, output and terminal. Its environment has HOLDFAST_NAME,
// and HOLDFAST_FENCE where the lock service has fences: hand that to storage that checks it. It does not have
// HOLDFAST_URL and HOLDFAST_PASSWORD. Signals that this process gets go on to the command's process group. If the lease is lost, the group gets
// SIGTERM, and SIGKILL after the grace of 5 s; the next holder may be at work then already. If this
// process is killed, even with SIGKILL, the group is killed, and the name comes free after at most one
// TTL. A process that the command leaves in the background goes on, without the lock.
//
// Without -wait it waits for as long as it takes. -wait 0 tries once. -done-for 12h makes finished work
// stay finished: for that time, others that ask find it done, and end with 0 at once. -min-hold keeps
// the name taken for a while from the grant on, so that a job that many nodes start at the same minute
// runs once. -campaign runs the command wherever this process leads, and again after a loss.
//
// Who comes from flock(1) finds -n, -w, -s, -E and NAME -c 'command' here. Durations are like 1m30s, or
// seconds.
//
// # Exit status
//
//	 0  done
//	 1  nothing was done, or something else failed
//	64  the command line is wrong
//	69  the lock service could not answer
//	70  run: the lease was lost
//	75  run: somebody else holds the name; -conflict-exit-code replaces it
//	126, 127  run: the command cannot be started, is not there
//	128+n  run: waiting was ended by signal n
//
// Otherwise run's exit status is the command's; it is 128+n if signal n has ended the command.
//
// # Looking
//
// The table has a row for each holder: its label, how the name is held, how long it has been held,
// what is left of the TTL, which goes up again with each renewal, and how long each process in the queue
// has waited, in parentheses if it has not been heard of lately. What the lock service cannot tell is "-",
// or "?" in the line. If the output is not a terminal, the table has no header, is never cut off, and has
// tabs between the columns.
//
// A filter with * or ? has to match a whole name; one without is the beginning of names.
//
// A marker says that some work is done, by -done-for or core.WithDedup. To remove it lets the work be done
// again; work that is under way is not stopped.
//
// A release notifies the next waiter. The holder learns of it with its next renewal, and works on until
// then. So use it for a holder that does not stop by itself. For each release and each marker that is
// removed, a line on standard error says who did what, when, and with which result.
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
	"github.com/holdfast-go/holdfast/core/cmd/holdfast/internal/backend"
	"github.com/holdfast-go/holdfast/core/cmd/holdfast/internal/child"
)

func main() {
	if child.Guard() {
		return
	}
	backend.Quiet()
	p := program{out: os.Stdout, err: os.Stderr, terminal: isTerminal(os.Stdout), watched: isTerminal(os.Stderr), getenv: os.Getenv}
	os.Exit(p.run(context.Background(), os.Args[1:]))
}

// The exit statuses: those of sysexits.h, as far as it has them.
const (
	done        = 0
	failed      = 1
	misused     = 64  // EX_USAGE
	unavailable = 69  // EX_UNAVAILABLE
	lost        = 70  // EX_SOFTWARE
	held        = 75  // EX_TEMPFAIL
	unusable    = 126 // as shells say it
	notFound    = 127
	signalled   = 128
)

// program is the command and its surroundings.
type program struct {
	out, err io.Writer
	terminal bool // that is what out is
	watched  bool // a terminal is what err is
	getenv   func(string) string
}

const usage = `usage: holdfast [-url URL] [-prefix prefix] command

  run [flags] NAME -- command…   hold the name while the command runs; run -h has the flags
  ls [-o format] [filter…]       who holds what, and who waits
  watch [filter…]                the same, live
  inspect [-o format] NAME       all that is known of one name
  release -handle H NAME         take the name from the holder with that handle
  markers [-o format] [filter…]  what counts as done (-done-for, WithDedup), and for how long
  markers -remove NAME           remove the marker, so that the work can be done again
  ui [-listen host:port]         serve a page with all that, live
  ready                          ask the lock service once, and say why not
  schema                         print the SQL that makes the table of a database
  version                        print the version

URLs, in -url or $HOLDFAST_URL; a password may be in $HOLDFAST_PASSWORD instead:

  redis://host:6379/0            rediss:// with TLS, unix:///path for a socket
  redis+sentinel://host:26379,host:26379/master
  redis+cluster://host:6379,host:6379
  redlock://host:6379,host:6379,host:6379   all nodes of a Redlock
  postgres://host/database       mysql://host/database      sqlite:path
  etcd://host:2379,host:2379     etcds:// with TLS
  zk://host:2181,host:2181/root
  nats://host:4222,host:4222/bucket
  memcached://host:11211

Parameters: ?prefix=holdfast: for keys, ?table=holdfast_locks for SQL, and the client library's own.
`

// errSaid has been said already.
var errSaid = usageError{errors.New("usage")}

type command func(*program, context.Context, *place, *flag.FlagSet, []string) (int, error)

func commands() map[string]command {
	return map[string]command{
		"run": (*program).hold, "ls": (*program).list, "watch": (*program).watch, "inspect": (*program).inspect,
		"release": (*program).release, "markers": (*program).markers, "ready": (*program).ready, "schema": (*program).schema, "version": (*program).version, "ui": (*program).ui,
	}
}

func (p *program) run(ctx context.Context, args []string) int {
	flags := p.flags("holdfast")
	flags.Usage = func() { _, _ = io.WriteString(p.err, usage) } // nowhere else to complain
	at := place{url: p.getenv("HOLDFAST_URL")}
	at.opts.Password = p.getenv("HOLDFAST_PASSWORD")
	at.define(flags)
	if err := flags.Parse(args); err != nil {
		return p.exit(misused, errors.Join(errSaid, err))
	}
	run, ok := commands()[flags.Arg(0)]
	if !ok {
		if flags.NArg() > 0 {
			p.complain("unknown command %q", flags.Arg(0))
		}
		flags.Usage()
		return misused
	}
	own := p.flags(flags.Arg(0))
	own.Usage = func() { p.describe(own) }
	at.define(own)
	if flags.Arg(0) != "run" { // which has its own ways with signals
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
		defer stop()
	}
	status, err := run(p, ctx, &at, own, flags.Args()[1:])
	return p.exit(status, err)
}

// exit says what went wrong, and what exit status that is.
func (p *program) exit(status int, err error) int {
	switch {
	case err == nil:
		return status
	case errors.Is(err, flag.ErrHelp):
		return done
	case !errors.Is(err, errSaid):
		p.complain("%s", trim(err))
	}
	_, wrong := errors.AsType[usageError](err)
	switch {
	case wrong, errors.Is(err, core.ErrInvalid):
		return misused
	case errors.Is(err, core.ErrUnavailable):
		return unavailable
	default:
		return max(status, failed)
	}
}

func (p *program) flags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(p.err)
	return flags
}

// describe tells of one command, in the words of the usage of all.
func (p *program) describe(flags *flag.FlagSet) {
	title := "usage: holdfast"
	for line := range strings.Lines(usage) {
		if strings.HasPrefix(line, "  "+flags.Name()+" ") {
			_, _ = fmt.Fprintf(p.err, "%s %s", title, strings.TrimPrefix(line, "  ")) // nowhere else to complain
			title = "      "
		}
	}
	_, _ = fmt.Fprintln(p.err)
	flags.PrintDefaults()
}

func (p *program) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(p.err, "holdfast: "+format+"\n", args...) // nowhere else to complain
}

// misuse complains of the command line.
func (p *program) misuse(format string, args ...any) error {
	p.complain(format, args...)
	return errSaid
}

// arguments reads the rest of a command line: at most so many words, and flags before, between and behind
// them, up to --.
func (p *program) arguments(flags *flag.FlagSet, args []string, most int) error {
	words := []string{"--"}
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return errors.Join(errSaid, err) // said by Parse
		}
		at := len(args) - flags.NArg()
		if at > 0 && args[at-1] == "--" {
			words = append(words, args[at:]...)
			break
		}
		words, args = append(words, args[at:min(at+1, len(args))]...), args[min(at+1, len(args)):]
	}
	_ = flags.Parse(words) // they are no flags
	if flags.NArg() > most {
		return p.misuse("%s: unexpected argument %q", flags.Name(), flags.Arg(most))
	}
	return nil
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// trim is the text of an error, for a line that begins with our name.
func trim(err error) string {
	text := clean(strings.ReplaceAll(err.Error(), "\n", "; ")) // several errors have a line each
	return strings.ReplaceAll(strings.TrimPrefix(text, "holdfast: "), ": holdfast: ", ": ")
}
