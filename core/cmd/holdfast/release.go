package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/user"

	"github.com/holdfast-go/holdfast/core"
)

// release is the command of that name.
func (p *program) release(ctx context.Context, at place, flags *flag.FlagSet, args []string) (int, error) {
	fence := flags.Uint64("fence", 0, "the fence that ls shows for the lease to end")
	if err := p.arguments(flags, args, 1); err != nil {
		return misused, err
	}
	name := flags.Arg(0)
	if name == "" || *fence == 0 {
		p.complain("release needs -fence and a name; ls shows both")
		return misused, errUsage
	}
	locks, closeAll, err := at.open()
	if err != nil {
		return failed, err
	}
	defer closeAll()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var label string // of the holder, if it is the one that is meant
	if info, err := locks.Inspect(ctx, name); err == nil && info.Fence == *fence {
		label = info.Label
	}
	freed, err := locks.ForceRelease(ctx, name, *fence)
	if errors.Is(err, core.ErrInvalid) { // nothing was sent
		return misused, err
	}
	p.audit(at.prefix+name, *fence, label, freed, err)
	switch {
	case errors.Is(err, core.ErrHeld):
		p.complain("%q is held, but not with fence %d, or not for long enough to have its fence known; nothing was done", name, *fence)
		return notReleased, nil
	case err != nil:
		return failed, err
	case !freed:
		p.complain("nobody holds %q; nothing was done", name)
		return notReleased, nil
	}
	_, err = fmt.Fprintf(p.out, "released %s\n", clean(name))
	return done, err
}

// audit leaves a line about who took a lock from whom, or tried to.
func (p *program) audit(key string, fence uint64, label string, freed bool, err error) {
	result := "released"
	switch {
	case errors.Is(err, core.ErrHeld):
		result = "refused: another fence"
	case err != nil:
		result = "unknown: " + err.Error()
	case !freed:
		result = "refused: not held"
	}
	by := "unknown"
	if u, err := user.Current(); err == nil {
		by = u.Username
	}
	if sudo := p.getenv("SUDO_USER"); sudo != "" {
		by = sudo + " as " + by
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	slog.New(slog.NewTextHandler(p.err, nil)).Warn("holdfast: force release",
		"key", key, "fence", fence, "holder", label, "result", result, "by", by, "host", host, "pid", os.Getpid())
}
