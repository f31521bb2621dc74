package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/cmd/holdfast/internal/child"
)

// terms are on which a command runs.
type terms struct {
	wait                          time.Duration
	waits, once                   bool // -wait was given; -n
	ttl, minHold, doneFor, grace  time.Duration
	limit                         int
	shared, campaign, quiet, logs bool
	conflict                      int // the exit status
	label                         string

	name string
	path string // of the command
	args []string
}

const runUsage = `usage: holdfast run [flags] NAME -- command…
       holdfast run [flags] NAME -c 'command for the shell'

It holds NAME while the command runs. Durations are like 1m30s, or seconds.

`

func (t *terms) define(flags *flag.FlagSet) {
	flags.Var(duration{&t.wait, &t.waits}, "wait", "how long to wait for the name; 0 tries once (default for ever)")
	flags.Var(duration{&t.wait, &t.waits}, "w", "as -wait")
	flags.BoolVar(&t.once, "n", false, "as -wait 0")
	durationFlag(flags, &t.ttl, "ttl", "how long the name stays taken after this machine has died")
	flags.IntVar(&t.limit, "limit", 1, "how many `holders` there may be at once")
	flags.BoolVar(&t.shared, "shared", false, "hold it together with others that say -shared")
	flags.BoolVar(&t.shared, "s", false, "as -shared")
	durationFlag(flags, &t.minHold, "min-hold", "keep the name taken for so long from the grant on")
	durationFlag(flags, &t.doneFor, "done-for", "after success nobody else does it for so long: they end with 0 at once")
	flags.BoolVar(&t.campaign, "campaign", false, "run the command while this process leads; after a loss, again")
	durationFlag(flags, &t.grace, "grace", "how long the command may take to end by SIGTERM, before SIGKILL")
	flags.IntVar(&t.conflict, "conflict-exit-code", held, "exit `status` if the name is held")
	flags.IntVar(&t.conflict, "E", held, "as -conflict-exit-code")
	flags.StringVar(&t.label, "label", "", "what others see of this holder (default host:pid command)")
	flags.BoolVar(&t.quiet, "q", false, "say nothing if the name is held or the work is done: for cron, which mails what it reads")
	flags.BoolVar(&t.logs, "v", false, "log what happens to the lease")
}

// parse reads the command line, and finds the command: nobody should wait for a name to learn of a typing
// mistake.
func (t *terms) parse(p *program, flags *flag.FlagSet, args []string) (int, error) {
	t.ttl, t.grace = 10*time.Second, 5*time.Second
	t.define(flags)
	flags.Usage = func() {
		_, _ = fmt.Fprint(p.err, runUsage) // nowhere else to complain
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return misused, errors.Join(errSaid, err)
	}
	words := flags.Args()
	dashes := len(args) > len(words) && args[len(args)-len(words)-1] == "--"
	if dashes && (len(words) < 2 || words[1] != "--") { // a name that begins with a dash has another one behind it
		return misused, p.misuse("run: no name before --; it is holdfast run [flags] NAME -- command…")
	}
	if len(words) == 0 || words[0] == "" {
		return misused, p.misuse("run: no name; run -h says how to call it")
	}
	words, err := t.split(p, words)
	if err != nil {
		return misused, err
	}
	if t.conflict < 0 || t.conflict > 255 {
		return misused, p.misuse("run: -conflict-exit-code %d: not between 0 and 255", t.conflict)
	}
	if t.shared && t.limit != 1 {
		return misused, p.misuse("run: -shared and -limit; which of them?")
	}
	if t.once && t.waits {
		return misused, p.misuse("run: -n and -wait; which of them?")
	}
	return t.find(words)
}

// split finds where the command begins behind the name.
func (t *terms) split(p *program, words []string) ([]string, error) {
	t.name, words = words[0], words[1:]
	switch {
	case len(words) == 2 && words[0] == "-c":
		words = []string{"/bin/sh", "-c", words[1]}
	case len(words) > 0 && words[0] == "-c":
		return nil, p.misuse("run: -c takes one word behind the name %q, the command for the shell in quotes: -c 'echo hi'", t.name)
	case len(words) > 0 && words[0] == "--":
		words = words[1:]
	case len(words) > 0 && strings.HasPrefix(words[0], "-"):
		return nil, p.misuse("run: %s behind the name %q: flags stand before the name, and -- before the command", words[0], t.name)
	}
	if len(words) == 0 {
		return nil, p.misuse("run: no command behind the name %q", t.name)
	}
	return words, nil
}

func (t *terms) find(words []string) (int, error) {
	path, err := exec.LookPath(words[0])
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return notFound, fmt.Errorf("%s: not found, as a command to run under the name %q", words[0], t.name)
	case err != nil:
		return unusable, err
	}
	t.path, t.args = path, words
	return done, nil
}

// options are those of core.
func (t *terms) options(p *program) (opts []core.NewOption) {
	label := t.label
	if label == "" {
		label = defaultLabel(t.args[0])
	}
	opts = append(opts, core.WithTTL(t.ttl), core.WithLabel(label), core.WithMinHold(t.minHold), core.WithDedup(t.doneFor), core.WithTemplate(t.name))
	if t.shared {
		opts = append(opts, core.WithShared())
	} else {
		opts = append(opts, core.WithLimit(t.limit))
	}
	switch {
	case t.once:
		opts = append(opts, core.WithWait(0))
	case t.waits:
		opts = append(opts, core.WithWait(t.wait))
	}
	opts = append(opts, core.WithObserver(func(e core.Event) {
		if e.Kind == core.EventUnconfirmed {
			p.complain("%q: the lock service has not confirmed the release; the name comes free within %s%s", t.name, t.ttl, t.unmarked())
		}
	}))
	if t.logs {
		opts = append(opts, core.WithLogger(slog.New(slog.NewTextHandler(p.err, nil))))
	}
	return opts
}

// unmarked says what else a release does that was not confirmed.
func (t *terms) unmarked() string {
	text := ""
	if t.minHold > 0 {
		text += ", perhaps before -min-hold is over"
	}
	if t.doneFor > 0 {
		text += ", and others may not find the work done"
	}
	return text
}

// defaultLabel has no arguments, which may have secrets.
func defaultLabel(command string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	label := fmt.Sprintf("%s:%d %s", host, os.Getpid(), filepath.Base(command))
	const most = 96
	return clean(label[:min(len(label), most)])
}

// hold is the command run.
func (p *program) hold(ctx context.Context, at *place, flags *flag.FlagSet, args []string) (int, error) {
	var t terms
	if status, err := t.parse(p, flags, args); err != nil {
		return status, err
	}
	ctx, relay := newRelay(ctx)
	defer relay.stop()
	at.opts.TTL, at.opts.Create = t.ttl, true
	s, err := at.open(ctx, t.options(p)...)
	if err != nil {
		return relay.instead(failed, err)
	}
	defer s.close(ctx)
	r := &running{program: p, terms: &t, relay: relay}
	do := s.locks.Do
	if t.campaign {
		do = s.locks.Campaign
	}
	p.warnOfItself(&t)
	stop := p.tellWait(ctx, s, &t)
	err = do(ctx, t.name, func(ctx context.Context) error { stop(); return r.work(ctx) })
	stop()
	return r.outcome(err)
}

// running is what becomes of the command.
type running struct {
	*program
	*terms

	relay  *relay
	began  bool
	status int // the command's, once it has ended
	raise  func()
}

// errStatus is the work's error: the command failed. No marker is left.
var errStatus = errors.New("the command failed")

// work runs the command until it ends. If ctx ends first, the lease is lost, or the campaign has to begin
// again: then the command is stopped.
func (r *running) work(ctx context.Context) error {
	lease, _ := core.FromContext(ctx) // it is there: Do has made the context
	c, detach, err := r.relay.start(func() (*child.Child, error) { return child.Start(r.path, r.args, r.environment(lease)) }, lease.Err)
	if err != nil {
		return err
	}
	r.began = true
	defer c.Close()
	defer detach()
	select {
	case <-c.Ended():
	case <-ctx.Done():
		var stopping sync.WaitGroup
		stopping.Go(func() { c.Stop(r.grace) }) // standard error may be a pipe that nobody reads
		r.complain("%s; stopping the command", trim(context.Cause(ctx)))
		stopping.Wait()
	}
	r.status = c.Status()
	r.raise, _ = c.Interrupted()
	if r.status != 0 {
		return errStatus
	}
	return nil
}

// environment has the name and the fence of this lease only. Inside another holdfast run there are those of the
// other lease, which getenv would find first, and which would pass for those of a lease without a fence. The URL and
// the password are this process's own.
func (r *running) environment(lease *core.Lease) []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"HOLDFAST_NAME", "HOLDFAST_FENCE", "HOLDFAST_URL", "HOLDFAST_PASSWORD"}, name)
	})
	env = append(env, "HOLDFAST_NAME="+r.name)
	if fence := lease.Fence(); fence > 0 {
		env = append(env, "HOLDFAST_FENCE="+strconv.FormatUint(fence, 10))
	}
	return env
}

// outcome is the exit status for what Do or Campaign returned.
func (r *running) outcome(err error) (int, error) {
	if r.raise != nil {
		r.raise()
	}
	heldErr, isHeld := errors.AsType[*core.HeldError](err)
	lostErr, isLost := errors.AsType[*core.LostError](err)
	switch {
	case isLost:
		r.complain("%s; the command's exit status was %d", trim(lostErr), r.status)
		return lost, nil
	case r.began && (err == nil || errors.Is(err, errStatus)):
		return r.status, nil
	case errors.Is(err, core.ErrDuplicate):
		r.tell("%q is done already; nothing to do", r.name)
		return done, nil
	case r.relay.ended():
		return r.relay.instead(failed, err)
	case isHeld:
		r.tell("%s", trim(heldErr))
		return r.conflict, nil
	case r.began:
		return failed, err
	default:
		return unusable, err
	}
}

func (r *running) tell(format string, args ...any) {
	if !r.quiet {
		r.complain(format, args...)
	}
}
