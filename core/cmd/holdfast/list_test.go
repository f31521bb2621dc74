package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func TestLsTellsScriptsWhoHoldsWhatAndWhoWaits(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	holder := f.process("host-1")
	f.acquire(holder, "order:42")
	f.acquire(f.process(""), "report")
	f.line("order:42")
	f.line("order:42")
	var out string
	backendtest.Eventually(f, "two wait", func() bool {
		out, _, _ = call(t, f.env, "ls", "-o", "wide")
		first := strings.Split(strings.Split(out, "\n")[0], "\t")
		return len(first) == 8 && first[0] == "order:42" && first[1] == "host-1" && first[2] == "exclusive" &&
			len(strings.Fields(first[5])) == 2 && len(first[7]) == 16
	})
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[1], "report\t-\texclusive\t") {
		t.Errorf("%q", lines)
	}
	out, _, status := call(t, f.env, "ls", "-o", "json", "order:")
	var r row
	backendtest.OK(t, json.Unmarshal([]byte(out), &r))
	if status != done || r.Name != "order:42" || r.Label != "host-1" || r.Kind != "exclusive" || len(r.Handle) != 16 || r.TTL <= 0 || len(r.Line) != 2 || !r.Line[0].Alive {
		t.Errorf("status %d, %q", status, out)
	}
	token := f.client()
	defer token.Close() //nolint:errcheck // it has only read
	if value := token.Get(t.Context(), f.share.Prefix+"order:42").Val(); len(value) < 22 || strings.Contains(out, value[:22]) {
		t.Errorf("a token in %q", out)
	}
	out, _, status = call(t, f.env, "inspect", "order:42")
	if want := "handle   " + r.Handle + "\n"; status != done || !strings.Contains(out, want) || !strings.Contains(out, "held by  host-1\n") || !strings.Contains(out, "line     2: ") {
		t.Errorf("status %d, %q", status, out)
	}
	out, _, status = call(t, f.env, "inspect", "nobody's")
	if want := "name     nobody's\nheld     no\n"; status != done || out != want {
		t.Errorf("status %d, %q", status, out)
	}
}

func TestAnEmptyAnswerSaysWhereItLooked(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.acquire(f.process("host-1"), "order:42")
	out, complaint, status := call(t, f.env, "ls", "order:*3", "x")
	if want := `nothing is held that matches "order:*3" or "x", at redis://` + f.share.Addr; out != "" || status != done || !strings.Contains(complaint, want) {
		t.Errorf("%q, %q, status %d", out, complaint, status)
	}
	out, complaint, status = call(t, f.env, "-prefix", "frob:", "ls")
	if out != "" || status != done || !strings.Contains(complaint, `under "frob:"`) || !strings.Contains(complaint, strconv.Quote(f.share.Prefix)) {
		t.Errorf("%q, %q, status %d", out, complaint, status)
	}
}

// wild is what a server may say.
func wild(n int) inspect.LeaseInfo {
	line := make([]inspect.WaiterInfo, n)
	for i := range line {
		line[i] = inspect.WaiterInfo{Waited: time.Duration(i+1) * 1000 * time.Hour}
	}
	return inspect.LeaseInfo{
		Name: strings.Repeat("ü", 170) + "\x1b[31m\n\u202e-end", Label: strings.Repeat("x", 250) + "\t\x07", Held: true,
		Kind: inspect.HoldHandoff, HeldFor: 1<<63 - 1, Fence: 1 << 53, Handle: "0123456789abcdef", Remaining: 1<<63 - 1, Line: line,
	}
}

func TestTheTableFitsInAHundredColumnsAndNothingInItSteersATerminal(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	backendtest.OK(t, writeTable(&b, []inspect.LeaseInfo{wild(0), wild(1), wild(3), wild(100), {Name: "n", Kind: inspect.HoldForeign, Label: "m"}}, false))
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 6 {
		t.Errorf("%d lines:\n%s", len(lines), b.String())
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if row := lines[1]; !strings.Contains(row, "-end") {
		t.Error(row)
	}
	b.Reset()
	backendtest.OK(t, writeTabs(&b, []inspect.LeaseInfo{wild(2)}, true))
	if line := strings.TrimSuffix(b.String(), "\n"); strings.ContainsAny(line, "\x1b\x07\n\u202e") || strings.Count(line, "\t") != 7 {
		t.Errorf("%q", line)
	}
}

func TestEachOfSeveralHoldersHasARowOfItsOwn(t *testing.T) {
	t.Parallel()
	line := []inspect.WaiterInfo{{Waited: time.Minute, Alive: true}}
	both := []inspect.HolderInfo{{Label: "web-1", Handle: "aaaa", Remaining: time.Second}, {Handle: "bbbb", Remaining: 2 * time.Second}}
	var b bytes.Buffer
	backendtest.OK(t, writeTabs(&b, []inspect.LeaseInfo{
		{Name: "many", Kind: inspect.HoldShared, HeldFor: 3 * time.Second, Fence: 7, Remaining: 2 * time.Second, Holders: both, Line: line},
		{Name: "few", Kind: inspect.HoldLimited, Limit: 3, Holders: both[:1]},
		{Name: "left", Label: "host-1", Handle: "cccc", Kind: inspect.HoldKept}, {Name: "left", Kind: inspect.HoldHandoff},
	}, true))
	want := "many\tweb-1\tshared\t3.0s\t1.0s\t60s\t7\taaaa\nmany\t-\tshared\t-\t2.0s\t-\t7\tbbbb\n" +
		"few\tweb-1\t1 of 3\t-\t1.0s\t-\t-\taaaa\nleft\thost-1\tkept\t-\tnone\t-\t-\tcccc\nleft\t-\thanded off\t-\tnone\t-\t-\t-\n"
	if b.String() != want {
		t.Errorf("%q, not %q", b.String(), want)
	}
}

func TestNodesThatDisagreeAreShown(t *testing.T) {
	t.Parallel()
	info := inspect.LeaseInfo{
		Name: "name", Held: true, Kind: inspect.HoldExclusive, Label: "web-1", Handle: "aaaa", Remaining: time.Second,
		Nodes: []inspect.NodeInfo{
			{Held: true, Label: "web-1", Handle: "aaaa", Remaining: time.Second}, {Held: true, Handle: "aaaa", Remaining: time.Second},
			{Held: true, Label: "web\n2", Handle: "bbbb", Remaining: 2 * time.Second}, {}, {Silent: true},
		},
	}
	var tabs, story, object bytes.Buffer
	for _, err := range []error{writeTabs(&tabs, []inspect.LeaseInfo{info}, false), writeStory(&story, info), writeJSON(&object, []inspect.LeaseInfo{info}, newRow)} {
		backendtest.OK(t, err)
	}
	if want := "name\tweb-1 (2 of 5 nodes)\texclusive\t-\t1.0s\t-\n"; tabs.String() != want {
		t.Errorf("%q, not %q", tabs.String(), want)
	}
	want := "node     0: web-1, handle aaaa, ttl 1.0s\nnode     1: no label, handle aaaa, ttl 1.0s\nnode     2: web?2, handle bbbb, ttl 2.0s\n" +
		"node     3: not held\nnode     4: no answer\n"
	if !strings.HasSuffix(story.String(), want) {
		t.Errorf("%q, not %q", story.String(), want)
	}
	want = `"nodes":[{"held":true,"label":"web-1","handle":"aaaa","ttl_ms":1000},{"held":true,"handle":"aaaa","ttl_ms":1000},` +
		`{"held":true,"label":"web\n2","handle":"bbbb","ttl_ms":2000},{"held":false},{"silent":true,"held":false}]`
	if !strings.Contains(object.String(), want) {
		t.Errorf("%s, not %s", object.String(), want)
	}
}

func TestTheLineTellsWhoMayBeDeadAndHowManyMoreThereAre(t *testing.T) {
	t.Parallel()
	alive, dead := inspect.WaiterInfo{Waited: time.Minute, Alive: true}, inspect.WaiterInfo{Waited: time.Second}
	for want, line := range map[string][]inspect.WaiterInfo{
		"-": nil, "60s": {alive}, "60s (1.0s)": {alive, dead}, "(1.0s) 60s 60s": {dead, alive, alive},
		"60s 60s (1.0s) +2": {alive, alive, dead, alive, dead}, "? (?)": {{Alive: true}, {}},
	} {
		if got := inLine(line, inTable); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestDurationsAreShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0.0s", 40 * time.Millisecond: "0.0s", 9949 * time.Millisecond: "9.9s", 9950 * time.Millisecond: "10s",
		99 * time.Second: "99s", 100 * time.Second: "2m", 99 * time.Minute: "99m", 100 * time.Minute: "2h",
		47 * time.Hour: "47h", 48 * time.Hour: "2d", 1<<63 - 1: "999d",
	} {
		if got := human(d); got != want || len(got) > 4 {
			t.Errorf("%s: %q, not %q", d, got, want)
		}
	}
}

func TestWatchShowsWhatComesAndGoesAndThatTheServerIsGone(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	f := &fleet{T: t, share: servers.Share{Addr: server.Addr(), Prefix: "holdfast:"}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	screen := &terminal{}
	var complaint bytes.Buffer
	p := program{out: screen, err: &complaint, terminal: true, getenv: func(string) string { return "" }}
	status := make(chan int)
	go func() {
		status <- p.run(ctx, []string{"-url", "redis://" + server.Addr(), "watch", "-every", "100ms", "-rows", "1"})
	}()
	last := func() string { // the screen that is shown
		text := screen.shown()
		return strings.ReplaceAll(text[max(0, strings.LastIndex(text, home)):], wipe, "")
	}
	shows := func(text string) {
		t.Helper()
		backendtest.Eventually(f, "the screen shows "+text, func() bool { return strings.Contains(last(), text) })
	}
	shows("holdfast:: 0 held, 0 in line")
	locks := f.process("host-1")
	x := f.acquire(locks, "order:42")
	f.acquire(locks, "a")
	f.line("order:42")
	shows("2 held, 1 in line\n\nNAME")
	shows("and 1 more")
	if rows := last(); !strings.Contains(rows, "order:42") || strings.Contains(rows, "\na ") {
		t.Errorf("not the longest line first:\n%s", rows)
	}
	backendtest.OK(t, x.Release(t.Context()))
	shows("2 held, 0 in line") // it went to the one in line
	server.Kill()
	shows("no answer\n\nholdfast: ")
	cancel()
	if got := <-status; got != done || complaint.Len() > 0 || !strings.HasSuffix(screen.shown(), leave) {
		t.Errorf("status %d, %q", got, complaint.String())
	}
}
