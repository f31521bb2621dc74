// Package inspectortest_test has the tests of package inspector that need a browser. They and the command
// that takes the pictures are a module of their own, so that nobody inherits what drives the browser.
package inspectortest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// bench is a page in a browser.
type bench struct {
	*testing.T

	locks *core.Locker
	tab   context.Context
	url   string
	proxy *proxy

	hangUp func() // ends all connections

	log safe // the audit records
	bad safe // what the browser complained of
}

// proxy is in front of the page. While it is cut off, it says so itself.
type proxy struct {
	page    http.Handler
	cut     atomic.Bool
	refused chan struct{} // of size one
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.cut.Load() {
		select {
		case p.refused <- struct{}{}:
		default:
		}
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	p.page.ServeHTTP(w, r)
}

// safe is a buffer that two goroutines may use.
type safe struct {
	mu sync.Mutex // protects b
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

var browser = struct {
	sync.Once
	ctx context.Context
}{}

// start starts the browser of all tests.
func start(t *testing.T) context.Context {
	t.Helper()
	path := servers.Find(t, "chromium", "chromium")
	browser.Do(func() {
		opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
		if os.Getuid() == 0 {
			opts = append(opts, chromedp.NoSandbox) // Chromium refuses to run as root otherwise
		}
		ctx, _ := chromedp.NewExecAllocator(context.Background(), opts...)
		browser.ctx, _ = chromedp.NewContext(ctx) //nolint:fatcontext // one for all tests, closed by TestMain
		backendtest.OK(t, chromedp.Do(browser.ctx))
	})
	return browser.ctx
}

func TestMain(m *testing.M) {
	status := m.Run()
	if browser.ctx != nil {
		_ = chromedp.Cancel(browser.ctx)
	}
	os.Exit(status)
}

// open opens the page of a Locker of its own, below a path.
func open(t *testing.T, opts ...inspector.Option) *bench {
	t.Helper()
	b := &bench{T: t}
	seen := inspector.NewRecorder()
	var err error
	if b.locks, err = core.New(memlock.New(), core.WithRenewEvery(100*time.Millisecond), core.WithObserver(seen.Observe)); err != nil {
		t.Fatal(err)
	}
	page := inspector.New(b.locks, append([]inspector.Option{
		inspector.WithRecorder(seen), inspector.WithLogger(slog.New(slog.NewTextHandler(&b.log, nil))),
	}, opts...)...)
	mux := http.NewServeMux()
	b.proxy = &proxy{page: http.StripPrefix("/admin/locks", page), refused: make(chan struct{}, 1)}
	mux.Handle("/admin/locks/", b.proxy)
	server := httptest.NewServer(mux)
	b.hangUp = server.CloseClientConnections
	b.url = server.URL + "/admin/locks/"
	ctx, cancel := chromedp.NewContext(start(t))
	ctx, cancelTime := context.WithTimeout(ctx, time.Minute)
	b.tab = ctx
	t.Cleanup(func() {
		if t.Failed() {
			if html, err := chromedp.Run(b.tab, chromedp.OuterHTML(chromedp.CSS("main"))); err == nil {
				t.Log(html[:min(len(html), 4000)])
			}
		}
		cancelTime()
		cancel()
		page.Close()
		server.Close()
		if text := b.bad.String(); text != "" {
			t.Errorf("the browser complains: %s", text)
		}
	})
	var reading sync.WaitGroup
	messages := chromedp.Console(ctx)
	reading.Go(func() {
		for m, err := range messages {
			if err != nil {
				return // the tab is closed
			}
			if m.IsException() || m.Source == "security" {
				_, _ = fmt.Fprintln(&b.bad, m)
			}
		}
	})
	t.Cleanup(func() { cancel(); reading.Wait() })
	b.do(chromedp.Navigate(b.url), chromedp.WaitVisible(chromedp.CSS(`#state[data-state="live"]`)))
	return b
}

func (b *bench) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	backendtest.OK(b, chromedp.Do(b.tab, steps...))
}

// ask evaluates an expression.
func ask[T any](b *bench, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.tab, chromedp.Evaluate[T](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression to be true.
func (b *bench) until(expression string) {
	b.Helper()
	for range 300 {
		if ask[bool](b, expression) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.Fatalf("never true: %s", expression)
}

func (b *bench) acquire(name string, opts ...core.Option) *core.Lease {
	b.Helper()
	x, err := b.locks.Acquire(b.Context(), name, opts...)
	backendtest.OK(b, err)
	b.Cleanup(func() { _ = x.Release(context.Background()) })
	return x
}

const firstRow = `document.querySelector("#table tr.lease")?.innerText ?? ""`

func TestTheTableLives(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.until(`!document.querySelector("#empty").hidden`)
	x := b.acquire("order:42", core.WithLabel("web-7"))
	b.until(`(` + firstRow + `).includes("order:42") && (` + firstRow + `).includes("web-7")`)
	left := ask[string](b, `document.querySelector(".trust span").textContent`)
	b.until(`document.querySelector(".trust span").textContent !== "` + left + `"`)
	// Its details open by keyboard, and stay open while the table goes on.
	b.do(chromedp.Focus(chromedp.CSS("#table .open")), chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("#table tr.more").innerText.includes("Fence")`)
	b.do(chromedp.Sleep(1500 * time.Millisecond))
	b.until(`document.activeElement.className === "open" && document.activeElement.getAttribute("aria-expanded") === "true"`)
	if got := ask[int](b, `document.querySelectorAll("#table .danger").length`); got != 0 {
		t.Error("a button for what is not allowed")
	}
	b.acquire("report", core.WithShared())
	b.until(`document.querySelectorAll("#table tr.lease").length === 2`)
	// As an event of the page: the driver types the letter even though the page has taken its key.
	b.do(chromedp.Evaluate[chromedp.Void](`document.dispatchEvent(new KeyboardEvent("keydown", {key: "/", cancelable: true}))`), chromedp.KeyEvent("REP"))
	b.until(`document.querySelectorAll("#table tr.lease").length === 1 && (` + firstRow + `).includes("shared")`)
	if err := x.Release(t.Context()); err != nil {
		t.Error(err)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("#search").value = ""; document.querySelector("#search").dispatchEvent(new Event("input"))`))
	b.until(`document.querySelectorAll("#table tr.lease").length === 1`)
}

func TestAReleaseIsAskedForTwiceAndAudited(t *testing.T) {
	t.Parallel()
	var may atomic.Bool
	b := open(t, inspector.WithAuthorization(func(*http.Request, inspector.Action) (string, error) {
		if !may.Load() {
			return "mallory", errors.New("no")
		}
		return "alice", nil
	}))
	x := b.acquire("order:42")
	b.until(`document.querySelectorAll("#table tr.lease").length === 1`)
	b.do(chromedp.Click(chromedp.CSS("#table .open")))
	b.until(`document.querySelector("#table tr.more").innerText.includes("` + fmt.Sprint(x.Fence()) + `")`)
	b.do(chromedp.Click(chromedp.CSS(`[data-act="release"]`)), chromedp.WaitVisible(chromedp.CSS("#ask")), chromedp.Click(chromedp.CSS("#ask-no")))
	if err := x.Err(); err != nil || b.log.String() != "" {
		t.Fatalf("after a no: %v, %s", err, b.log.String())
	}
	b.do(chromedp.Click(chromedp.CSS(`[data-act="release"]`)), chromedp.WaitVisible(chromedp.CSS("#ask")), chromedp.Click(chromedp.CSS("#ask-yes")))
	b.until(`document.querySelector("#ask-answer").innerText === "you may not do that"`)
	if err := x.Err(); err != nil || !strings.Contains(b.log.String(), "by=mallory") {
		t.Errorf("who may not: %v, %s", err, b.log.String())
	}
	may.Store(true)
	b.do(chromedp.Click(chromedp.CSS("#ask-no")), chromedp.Click(chromedp.CSS(`[data-act="release"]`)), chromedp.WaitVisible(chromedp.CSS("#ask")), chromedp.Click(chromedp.CSS("#ask-yes")))
	select {
	case <-x.Context().Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the lease goes on")
	}
	if lost, ok := errors.AsType[*core.LostError](x.Err()); !ok || lost.Reason != core.ReasonTaken {
		t.Error(x.Err())
	}
	b.until(`!document.querySelector("#ask").open`)
	if text := b.log.String(); !strings.Contains(text, "by=alice") || !strings.Contains(text, "handle=") || !strings.Contains(text, "result=released") {
		t.Error(text)
	}
	b.until(`document.querySelectorAll("#table tr.lease").length === 0`)
}

func TestAMarkerIsShownAndRemovedAfterAQuestion(t *testing.T) {
	t.Parallel()
	b := open(t, inspector.WithAuthorization(func(*http.Request, inspector.Action) (string, error) { return "alice", nil }))
	work := func(context.Context) error { return nil }
	backendtest.OK(t, b.locks.Do(t.Context(), "order:42", work, core.WithDedup(time.Hour), core.WithDedupScope("<b>pay</b>"), core.WithLabel("web-7")))
	b.acquire("order:42")
	b.until(`document.querySelectorAll("#table tr.lease").length === 1`)
	b.do(chromedp.Click(chromedp.CSS("#table .open")))
	b.until(`document.querySelector("#table tr.more").innerText.includes("<b>pay</b>, ends in")`)
	b.do(chromedp.Click(chromedp.CSS("#tab-markers")))
	b.until(`document.querySelector("#marker-table tbody").innerText.includes("<b>pay</b>\tweb-7")`)
	b.do(chromedp.Click(chromedp.CSS("#marker-table button")), chromedp.WaitVisible(chromedp.CSS("#ask")), chromedp.Click(chromedp.CSS("#ask-no")))
	if text := b.log.String(); text != "" {
		t.Fatalf("after a no: %s", text)
	}
	b.do(chromedp.Click(chromedp.CSS("#marker-table button")), chromedp.WaitVisible(chromedp.CSS("#ask")), chromedp.Click(chromedp.CSS("#ask-yes")))
	b.until(`!document.querySelector("#ask").open`)
	b.until(`!document.querySelector("#marker-empty").hidden && document.querySelector("#marker-empty").innerText === "Nothing is marked as done."`)
	if text := b.log.String(); !strings.Contains(text, "by=alice") || !strings.Contains(text, "remove marker") || !strings.Contains(text, "result=removed") {
		t.Error(text)
	}
}

// markup is what would run if any of it were taken for HTML or script.
func markup() map[string]string {
	return map[string]string{
		"image":     `<img src=x onerror="window.ran=1">`,
		"script":    `<script>window.ran=1</script>`,
		"attribute": `" onmouseover="window.ran=1" x="`,
		"svg":       `</td></table><svg onload=window.ran=1>`,
		"template":  "${window.ran=1}",
		"event":     "x\ndata: {}\n\nevent: now",
		"link":      "javascript:window.ran=1",
	}
}

func TestHostileNamesDoNotRunAndHideNothing(t *testing.T) {
	t.Parallel()
	b := open(t)
	names := map[string]bool{}
	take := func(value string) {
		x, err := b.locks.Acquire(t.Context(), value, core.WithoutRenewal(), core.WithTTL(time.Minute))
		if err != nil {
			return // core does not take it as a name
		}
		names[value] = true
		t.Cleanup(func() { _ = x.Release(context.Background()) })
		if y, err := b.locks.Acquire(t.Context(), fmt.Sprint("label ", len(names)), core.WithLabel(value), core.WithoutRenewal(), core.WithTTL(time.Minute)); err == nil {
			t.Cleanup(func() { _ = y.Release(context.Background()) })
			names[y.Name()] = true
		}
	}
	for _, value := range hostile.Values() {
		take(value)
	}
	for _, value := range markup() {
		take(value)
	}
	if len(names) < 20 {
		t.Fatalf("only %d names", len(names))
	}
	b.until(fmt.Sprintf(`document.querySelectorAll("#table tr.lease").length === %d`, len(names)))
	b.do(chromedp.Click(chromedp.CSS("#group")))
	b.do(chromedp.Evaluate[chromedp.Void](`for (const x of document.querySelectorAll("#table .open")) x.click()`))
	b.do(chromedp.Sleep(1200 * time.Millisecond))
	if ask[bool](b, `"ran" in window`) {
		t.Error("something ran")
	}
	if n := ask[int](b, `document.querySelectorAll("main img, main script, main a, main iframe, main svg").length`); n != 0 {
		t.Errorf("%d elements out of names", n)
	}
	if names["\u202e1"] {
		b.until(`[...document.querySelectorAll("#table .open")].some((x) => x.innerText === "U+202E1")`)
	}
	script := markup()["script"]
	b.until("[...document.querySelectorAll('#table .open')].some((x) => x.textContent === `" + script + "`)")
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(b.url+"#time="+script))
	b.until(`document.querySelector("#chart svg") !== null`)
	if ask[bool](b, `"ran" in window`) {
		t.Error("its chart runs it")
	}
}

func TestTheChartShowsHoldsWaitsAndLosses(t *testing.T) {
	t.Parallel()
	b := open(t)
	x := b.acquire("order:42")
	var waiting sync.WaitGroup
	waiting.Go(func() { _ = b.locks.Do(t.Context(), "order:42", func(context.Context) error { return nil }) })
	if _, err := b.locks.TryAcquire(t.Context(), "order:42"); !errors.Is(err, core.ErrHeld) {
		t.Error(err)
	}
	b.until(`document.querySelectorAll("#table tr.lease").length === 1`)
	if err := x.Release(t.Context()); err != nil {
		t.Error(err)
	}
	waiting.Wait()
	y := b.acquire("order:42", core.WithMaxHold(100*time.Millisecond))
	<-y.Context().Done()
	b.do(chromedp.Focus(chromedp.CSS("#tab-now")), chromedp.Evaluate[chromedp.Void](`document.querySelector("#tab-now").dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}))`))
	b.until(`document.querySelectorAll("#chart rect.bar").length >= 3 && document.querySelectorAll("#chart .thin").length === 1 && document.querySelectorAll("#chart .lost").length === 1 && document.querySelectorAll("#chart .conflict").length === 1`)
	b.until(`(() => { const at = [...document.querySelectorAll("#chart text")].map((n) => n.textContent).filter((s) => s.startsWith("−")); return at.length > 0 && new Set(at).size === at.length })()`)
	b.until(`document.querySelector("#contended tbody").innerText.includes("order:42")`)
	b.do(chromedp.Click(chromedp.CSS("#tab-health")))
	b.until(`document.querySelector("#cards").innerText.includes("Leases of this process")`)
}

func TestALongWaitNeedsAttentionAndLeadsToItsRow(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.acquire("order:42", core.WithTTL(2*time.Second)) // renewed on a busy machine, too
	b.acquire("report")
	b.until(`document.querySelectorAll("#table tr.lease").length === 2 && document.querySelector("#attention").hidden`)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() { _ = b.locks.Do(ctx, "order:42", func(context.Context) error { return nil }) })
	b.until(`document.querySelector("#attention").innerText.includes("order:42 has a call that has waited for")`)
	b.do(chromedp.Click(chromedp.CSS("#attention button")))
	b.until(`document.querySelectorAll("#table tr.lease").length === 1 && document.querySelector("#table tr.more").innerText.includes("order:42")`)
	cancel()
	waiting.Wait()
	b.until(`document.querySelector("#attention").hidden`)
}

func TestThePageComesBackAfterAProxyHasRefusedIt(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.proxy.cut.Store(true)
	b.hangUp()
	b.until(`document.querySelector("#state").dataset.state === "bad"`)
	select {
	case <-b.proxy.refused:
	case <-time.After(30 * time.Second):
		t.Fatal("the browser does not ask again")
	}
	b.proxy.cut.Store(false)
	b.until(`document.querySelector("#state").dataset.state === "live"`)
}
