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

// holder is who is meant: by a fence or by a handle.
type holder struct {
	fence  uint64
	handle string
}

func (h holder) String() string {
	if h.handle != "" {
		return "handle " + h.handle
	}
	return fmt.Sprintf("fence %d", h.fence)
}

// label is that of the holder, if it is the one that is meant.
func (h holder) label(info core.LeaseInfo) string {
	if h.handle != "" && h.handle == info.Handle || h.handle == "" && h.fence == info.Fence {
		return info.Label
	}
	return ""
}

func (h holder) release(ctx context.Context, locks *core.Locker, name string) (freed bool, err error) {
	if h.handle != "" {
		return locks.ForceReleaseHandle(ctx, name, h.handle)
	}
	return locks.ForceRelease(ctx, name, h.fence)
}

// release is the command of that name.
func (p *program) release(ctx context.Context, at place, flags *flag.FlagSet, args []string) (int, error) {
	var h holder
	flags.Uint64Var(&h.fence, "fence", 0, "the fence that ls shows for the lease to end")
	flags.StringVar(&h.handle, "handle", "", "else the handle")
	if err := p.arguments(flags, args, 1); err != nil {
		return misused, err
	}
	name := flags.Arg(0)
	if name == "" || (h.fence == 0) == (h.handle == "") {
		p.complain("release needs -fence or -handle, and a name; ls shows them")
		return misused, errUsage
	}
	locks, closeAll, err := at.open()
	if err != nil {
		return failed, err
	}
	defer closeAll()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info, err := locks.Inspect(ctx, name)
	if errors.Is(err, core.ErrInvalid) { // nothing was sent
		return misused, err
	}
	freed, err := h.release(ctx, locks, name)
	p.audit(at.prefix+name, h, h.label(info), freed, err)
	switch {
	case errors.Is(err, core.ErrHeld):
		p.complain("%q is held, but not with %s, or not for long enough to have its fence known; nothing was done", name, h)
		return notReleased, nil
	case errors.Is(err, core.ErrInvalid):
		p.complain("%q is shared, and several have %s; ls shows the handle of each; nothing was done", name, h)
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
func (p *program) audit(key string, h holder, label string, freed bool, err error) {
	result := "released"
	switch {
	case errors.Is(err, core.ErrHeld):
		result = "refused: another holder"
	case errors.Is(err, core.ErrInvalid):
		result = "refused: several holders"
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
		"key", key, "fence", h.fence, "handle", h.handle, "holder", label, "result", result, "by", by, "host", host, "pid", os.Getpid())
}
