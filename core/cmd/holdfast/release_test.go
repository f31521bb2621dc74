package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
)

// says fails the test unless a text has all of these.
func says(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
}

func TestReleaseEndsTheLeaseOfThatHandleAndSaysWhoDidIt(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.env["SUDO_USER"] = "alice"
	x := f.acquire(f.process("host 1"), "order:42", core.WithShared())
	handle := f.info("order:42").Holders[0].Handle
	y := f.acquire(f.process("host 2"), "order:42", core.WithShared())
	if out, _, _ := call(t, f.env, "ls", "-o", "wide", "order:42"); strings.Count(out, "\tshared\t") != 2 || !strings.Contains(out, handle) {
		t.Errorf("%q", out)
	}
	for _, c := range []struct {
		what, handle, name string
		status             int
		out                string
		audit              []string
	}{
		{"another handle", "0123456789abcdef", "order:42", failed, "", []string{`result="refused: another holder"`, "nothing was done"}},
		{"another name", handle, "order:4", failed, "", []string{`result="refused: not held"`, "nobody holds"}},
		{"the handle", handle, "order:42", done, "released order:42\n", []string{
			"level=WARN", "time=", "name=order:42 ", "prefix=" + f.share.Prefix + " ", "handle=" + handle + " ", `holder="host 1"`, "result=released ",
			`by="alice as `, "host=", fmt.Sprintf("pid=%d\n", os.Getpid()),
		}},
	} {
		out, audit, status := call(t, f.env, "release", "--handle", c.handle, c.name)
		if status != c.status || out != c.out {
			t.Errorf("%s: status %d, %q", c.what, status, out)
		}
		says(t, audit, c.audit...)
	}
	<-x.Context().Done()
	if lost, ok := errors.AsType[*core.LostError](x.Err()); !ok || lost.Reason != core.ReasonTaken {
		t.Errorf("its holder: %v", x.Err())
	}
	if err := y.Release(t.Context()); err != nil {
		t.Errorf("the other one: %v", err)
	}
	f.acquire(f.process("host 3"), "order:42") // which has no others beside it
	_, audit, _ := call(t, f.env, "release", "-handle", f.info("order:42").Handle, "order:42")
	says(t, audit, `holder="host 3"`, "result=released ")
}
