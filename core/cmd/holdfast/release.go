package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"slices"

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
func (p *program) release(ctx context.Context, at *place, flags *flag.FlagSet, args []string) (int, error) {
	var h holder
	flags.Uint64Var(&h.fence, "fence", 0, "the fence that ls shows for the lease to end")
	flags.StringVar(&h.handle, "handle", "", "else the handle")
	if err := p.arguments(flags, args, 1); err != nil {
		return misused, err
	}
	name := flags.Arg(0)
	if name == "" || (h.fence == 0) == (h.handle == "") {
		return misused, p.misuse("release needs -fence or -handle, and a name; ls -o wide shows them")
	}
	s, err := at.open(ctx)
	if err != nil {
		return failed, err
	}
	defer s.close(ctx)
	locks := s.locks
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info, err := locks.Inspect(ctx, name)
	if errors.Is(err, core.ErrInvalid) { // nothing was sent
		return misused, err
	}
	freed, err := h.release(ctx, locks, name)
	p.audit(s, name, h, h.label(info), freed, err)
	switch {
	case errors.Is(err, core.ErrHeld):
		p.complain("%q is held, but not with %s, or not for long enough to have its fence known; nothing was done", name, h)
		return failed, nil
	case errors.Is(err, core.ErrInvalid):
		p.complain("%q is shared, and several have %s; ls -o wide shows the handle of each; nothing was done", name, h)
		return failed, nil
	case err != nil:
		return failed, err
	case !freed:
		p.complain("nobody holds %q; nothing was done", name)
		return failed, nil
	}
	_, err = fmt.Fprintf(p.out, "released %s\n", clean(name))
	return done, err
}

// audit leaves a line about who took a lock from whom, or tried to.
func (p *program) audit(s *service, name string, h holder, label string, freed bool, err error) {
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
	p.record("holdfast: force release", s, name, "fence", h.fence, "handle", h.handle, "holder", label, "result", result)
}

// auditMarker does the same for a marker.
func (p *program) auditMarker(s *service, name, scope string, removed bool, err error) {
	result := "removed"
	switch {
	case errors.Is(err, core.ErrInvalid):
		return // nothing was sent
	case err != nil:
		result = "unknown: " + err.Error()
	case !removed:
		result = "refused: no such marker"
	}
	p.record("holdfast: remove marker", s, name, "scope", scope, "result", result)
}

// record adds who did it, and where.
func (p *program) record(what string, s *service, name string, args ...any) {
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
	args = slices.Concat([]any{"name", name, "at", s.Place, "prefix", s.Prefix}, args, []any{"by", by, "host", host, "pid", os.Getpid()})
	slog.New(slog.NewTextHandler(p.err, nil)).Warn(what, args...)
}
