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
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/operate"
)

// release is the command of that name.
func (p *program) release(ctx context.Context, at *place, flags *flag.FlagSet, args []string) (int, error) {
	handle := flags.String("handle", "", "the handle that ls -o wide shows for the lease to end")
	if err := p.arguments(flags, args, 1); err != nil {
		return misused, err
	}
	name := flags.Arg(0)
	if name == "" || *handle == "" {
		return misused, p.misuse("release needs -handle and a name; ls -o wide shows both")
	}
	s, err := at.open(ctx)
	if err != nil {
		return failed, err
	}
	defer s.close(ctx)
	locks := s.locks
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	info, err := operate.New(locks).Inspect(ctx, name)
	if errors.Is(err, core.ErrInvalid) { // nothing was sent
		return misused, err
	}
	freed, err := operate.New(locks).ForceRelease(ctx, name, *handle)
	label := ""
	for _, h := range append(info.Holders, inspect.HolderInfo{Label: info.Label, Handle: info.Handle}) {
		if h.Handle == *handle {
			label = h.Label
		}
	}
	p.audit(s, name, *handle, label, freed, err)
	switch {
	case errors.Is(err, core.ErrHeld):
		p.complain("%q is held, but not with handle %s; nothing was done", name, *handle)
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
func (p *program) audit(s *service, name, handle, label string, freed bool, err error) {
	result := "released"
	switch {
	case errors.Is(err, core.ErrHeld):
		result = "refused: another holder"
	case err != nil:
		result = "unknown: " + err.Error()
	case !freed:
		result = "refused: not held"
	}
	p.record("holdfast: force release", s, name, "handle", handle, "holder", label, "result", result)
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
