package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/operate"
)

// handle is what an operator sees of a name's only holder.
func (f *fleet) handle(name string) string {
	f.Helper()
	info, err := operate.New(f.process("")).Inspect(f.Context(), name)
	backendtest.OK(f, err)
	return info.Handle
}

func TestReleaseEndsTheLeaseOfThatHandleAndSaysWhoDidIt(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.env["SUDO_USER"] = "alice"
	x := f.acquire(f.process("host 1"), "order:42")
	handle := f.handle("order:42")
	out, audit, status := call(t, f.env, "release", "--handle", handle, "order:42")
	if status != done || out != "released order:42\n" {
		t.Errorf("status %d, %q", status, out)
	}
	for _, want := range []string{
		"level=WARN", "time=", "name=order:42 ", "prefix=" + f.share.Prefix + " ", "handle=" + handle, `holder="host 1"`, "result=released ",
		`by="alice as `, "host=", fmt.Sprintf("pid=%d\n", os.Getpid()),
	} {
		if !strings.Contains(audit, want) {
			t.Errorf("no %q in %q", want, audit)
		}
	}
	<-x.Context().Done()
	if lost, ok := errors.AsType[*core.LostError](x.Err()); !ok || lost.Reason != core.ReasonTaken {
		t.Errorf("its holder: %v", x.Err())
	}
	out, audit, status = call(t, f.env, "release", "-handle", handle, "order:42")
	if status != failed || out != "" || !strings.Contains(audit, `result="refused: not held"`) || !strings.Contains(audit, "nobody holds") {
		t.Errorf("a second time: status %d, %q, %q", status, out, audit)
	}
}

func TestReleaseByAHandleEndsThatLeaseAlone(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	info := func() inspect.LeaseInfo {
		info, err := operate.New(f.process("")).Inspect(t.Context(), "order:42")
		backendtest.OK(t, err)
		return info
	}
	x, err := f.process("").Acquire(t.Context(), "order:42", core.WithShared(), core.WithoutRenewal())
	backendtest.OK(t, err)
	handle := info().Holders[0].Handle
	y, err := f.process("").Acquire(t.Context(), "order:42", core.WithShared(), core.WithoutRenewal())
	backendtest.OK(t, err)
	if out, _, _ := call(t, f.env, "ls", "-o", "wide", "order:42"); strings.Count(out, "\tshared\t") != 2 || !strings.Contains(out, handle) {
		t.Errorf("%q", out)
	}
	out, audit, status := call(t, f.env, "release", "-handle", "0123456789abcdef", "order:42")
	if status != failed || out != "" || !strings.Contains(audit, `result="refused: another holder"`) {
		t.Errorf("another handle: status %d, %q, %q", status, out, audit)
	}
	out, audit, status = call(t, f.env, "release", "-handle", handle, "order:42")
	if status != done || out != "released order:42\n" || !strings.Contains(audit, "handle="+handle+" ") || !strings.Contains(audit, "result=released ") {
		t.Errorf("status %d, %q, %q", status, out, audit)
	}
	if err := x.Release(t.Context()); !errors.Is(err, core.ErrLost) {
		t.Errorf("who is meant: %v", err)
	}
	if err := y.Release(t.Context()); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

func TestAReleaseWhoseOutcomeIsUnknownIsAuditedAsThat(t *testing.T) {
	t.Parallel()
	_, audit, status := call(t, nil, "-url", "redis://127.0.0.1:1", "release", "-handle", "7", "order:42")
	if status != unavailable || !strings.Contains(audit, `result="unknown: `) || !strings.Contains(audit, "name=order:42 ") {
		t.Errorf("status %d, %q", status, audit)
	}
}
