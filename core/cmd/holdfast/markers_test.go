package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// finish leaves a marker.
func (f *fleet) finish(locks *core.Locker, name, scope string) {
	f.Helper()
	work := func(context.Context) error { return nil }
	backendtest.OK(f, locks.Do(f.Context(), name, work, core.WithDedup(time.Hour), core.WithDedupScope(scope)))
}

func TestMarkersAreListedForPeopleAndForScripts(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	locks := f.process("web-7")
	f.finish(locks, "order:42", "pay")
	f.finish(locks, "order:42", "refund")
	f.finish(locks, "report", "")
	out, _, status := call(t, f.env, "markers")
	if want := "order:42\tpay\tweb-7\t60m\norder:42\trefund\tweb-7\t60m\nreport\t-\tweb-7\t60m\n"; status != done || out != want {
		t.Errorf("status %d, %q", status, out)
	}
	out, _, status = call(t, f.env, "markers", "*:4?", "-o", "json")
	var m markerRow
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&m); err != nil || status != done || strings.Count(out, "\n") != 2 || m.Scope != "pay" || m.TTL <= 0 {
		t.Errorf("status %d, %q: %v", status, out, err)
	}
	out, complaint, status := call(t, f.env, "markers", "x")
	if want := `there is no marker that matches "x", at redis://` + f.share.Addr; status != done || out != "" || !strings.Contains(complaint, want) {
		t.Errorf("status %d, %q, %q", status, out, complaint)
	}
}

func TestARemovedMarkerLetsItsWorkBeDoneAgain(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.env["SUDO_USER"] = "alice"
	locks := f.process("web-7")
	f.finish(locks, "order:42", "pay")
	f.finish(locks, "order:42", "refund")
	f.finish(locks, "order:421", "pay")
	refused := func(why string, args ...string) {
		t.Helper()
		if out, complaint, status := call(t, f.env, args...); status != failed || out != "" || !strings.Contains(complaint, why) || !strings.Contains(complaint, "nothing was done") {
			t.Errorf("%q: status %d, %q, %q", args, status, out, complaint)
		}
	}
	refused("has no marker", "markers", "-remove", "order:4")
	refused(`-scope says which: "pay", "refund"`, "markers", "-remove", "order:42")
	refused("refused: no such marker", "markers", "-remove", "-scope", "frob", "order:42")
	out, audit, status := call(t, f.env, "markers", "-remove", "order:42", "-scope", "pay")
	if status != done || out != "removed the marker of order:42\n" {
		t.Errorf("status %d, %q", status, out)
	}
	says(t, audit, "level=WARN", `msg="holdfast: remove marker"`, "name=order:42 ", "scope=pay ", "result=removed ", `by="alice as `)
	f.finish(locks, "order:42", "pay")
	if out, _, status := call(t, f.env, "markers", "-remove", "order:421"); status != done || out == "" { // the only one
		t.Errorf("status %d, %q", status, out)
	}
	f.finish(locks, "order:421", "pay")
}
