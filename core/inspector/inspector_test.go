package inspector_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/operate"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what tests break on purpose is no news
	goleak.VerifyTestMain(m)
}

func newLocker(t *testing.T, d driver.Driver, opts ...core.NewOption) *core.Locker {
	t.Helper()
	locks, err := core.New(d, opts...)
	backendtest.OK(t, err)
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	return locks
}

func acquire(t *testing.T, locks *core.Locker, name string, opts ...core.Option) *core.Lease {
	t.Helper()
	x, err := locks.Acquire(t.Context(), name, opts...)
	backendtest.OK(t, err)
	t.Cleanup(func() { _ = x.Release(context.Background()) })
	return x
}

// disturbed is a lock service whose walks a test counts, and disturbs.
type disturbed struct {
	*memlock.Store

	walks  atomic.Int32
	before func(ctx context.Context) error // each of them; nil is nothing
	change func(info *inspect.LeaseInfo)   // what is told of each name; nil is as it is
}

func (d *disturbed) walk(ctx context.Context) error {
	d.walks.Add(1)
	if d.before == nil {
		return nil
	}
	return d.before(ctx)
}

func (d *disturbed) Leases(ctx context.Context, prefix string) iter.Seq2[inspect.LeaseInfo, error] {
	return func(yield func(inspect.LeaseInfo, error) bool) {
		if err := d.walk(ctx); err != nil {
			yield(inspect.LeaseInfo{}, err)
			return
		}
		for info, err := range d.Store.Leases(ctx, prefix) {
			if d.change != nil {
				d.change(&info)
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

func (d *disturbed) Markers(ctx context.Context, prefix string) iter.Seq2[inspect.MarkerInfo, error] {
	return func(yield func(inspect.MarkerInfo, error) bool) {
		if err := d.walk(ctx); err != nil {
			yield(inspect.MarkerInfo{}, err)
			return
		}
		d.Store.Markers(ctx, prefix)(yield)
	}
}

// browser reads a stream, as far as it needs to.
type browser struct {
	t      *testing.T
	cancel context.CancelFunc
	data   chan string
	gone   chan struct{}
}

// pipe is a ResponseWriter that hands on what is written.
type pipe struct {
	http.ResponseWriter
	w io.Writer
}

func (p pipe) Write(b []byte) (int, error) { return p.w.Write(b) }
func (p pipe) Flush()                      {}

func watch(t *testing.T, page http.Handler, query string) *browser {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := &browser{t, cancel, make(chan string, 1000), make(chan struct{})}
	read, write := io.Pipe()
	go func() {
		defer close(b.gone)
		page.ServeHTTP(pipe{httptest.NewRecorder(), write}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events"+query, http.NoBody))
		_ = write.Close()
	}()
	go func() {
		defer close(b.data)
		for scan := bufio.NewScanner(read); scan.Scan(); {
			if text, ok := strings.CutPrefix(scan.Text(), "data: "); ok {
				b.data <- text
			}
		}
	}()
	return b
}

type view struct {
	Error   string
	Total   int
	Waiting int
	Release bool
	Names   []struct {
		Name, Label, Kind, Fence, Handle, Template string
		Nodes                                      []node
	}
	Contended []struct {
		Name                     string
		Waits, Conflicts, Losses int
	}
	Attention []struct{ Name, Text string }
	Health    struct {
		Held, Waiting, Lost int
		Recorded            bool
	}
}

type node struct {
	Silent, Held  bool
	Label, Handle string
}

func (b *browser) next() (v view) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(<-b.data), &v); err != nil {
		b.t.Fatal(err)
	}
	return v
}

func (b *browser) leave() { b.cancel(); <-b.gone }

func TestItLooksOnceASecondHoweverManyWatchAndNotAtAllWhenNobodyDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disturbed{Store: memlock.New()}
		locks := newLocker(t, d)
		acquire(t, locks, "order:42", core.WithLabel("web-7"))
		page := inspector.New(locks)
		defer page.Close()
		time.Sleep(time.Minute)
		if n := d.walks.Load(); n != 0 {
			t.Errorf("%d looks while nobody watches", n)
		}
		var all []*browser
		for range 50 {
			all = append(all, watch(t, page, ""))
		}
		for range 5 {
			watch(t, page, "").leave() // one that is loaded again and again
		}
		time.Sleep(60*time.Second + time.Millisecond)
		if n := d.walks.Load(); n != 61 {
			t.Errorf("%d looks in 60 s", n)
		}
		for _, b := range all {
			if v := b.next(); v.Total != 1 || v.Names[0].Name != "order:42" || v.Names[0].Label != "web-7" || v.Names[0].Kind != "exclusive" || v.Release {
				t.Errorf("%+v", v)
			}
			b.leave()
		}
		synctest.Wait()
		before := d.walks.Load()
		time.Sleep(time.Minute)
		if n := d.walks.Load(); n != before {
			t.Errorf("%d looks after the last one has left", n-before)
		}
	})
}

func TestTheStreamShowsWhatIsSearchedForAndWhatWentWrong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		locks := newLocker(t, &disturbed{Store: memlock.New(), before: func(context.Context) error {
			if down.Load() {
				return errors.New("gone")
			}
			return nil
		}})
		acquire(t, locks, "order:42", core.WithLabel("Web-7"))
		acquire(t, locks, "report", core.WithShared(), core.WithLabel("Web-8"))
		page := inspector.New(locks)
		defer page.Close()
		for search, want := range map[string]int{"": 2, "ORDER": 1, "web-7": 1, "web-8": 1, "x": 0} {
			b := watch(t, page, "?search="+search)
			if v := b.next(); v.Total != want {
				t.Errorf("%q: %+v", search, v)
			}
			b.leave()
		}
		b := watch(t, page, "")
		down.Store(true)
		time.Sleep(3 * time.Second)
		v := b.next()
		for v.Error == "" {
			v = b.next()
		}
		b.leave()
	})
}

func TestCloseEndsTheStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		page := inspector.New(newLocker(t, memlock.New()))
		b := watch(t, page, "")
		b.next()
		page.Close()
		page.Close()
		<-b.gone
		late := watch(t, page, "")
		<-late.gone
		page.Watch(t.Context())
	})
}

func TestARecorderTellsOfThisProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := inspector.NewRecorder()
		var told atomic.Int32
		locks := newLocker(t, memlock.New(), core.WithObserver(seen.Observe), core.WithObserver(func(e core.Event) {
			if e.Kind == core.EventAcquired {
				told.Add(1)
			}
		}))
		x := acquire(t, locks, "order:42", core.WithTemplate("order:{id}"))
		if _, err := locks.TryAcquire(t.Context(), "order:42"); !errors.Is(err, core.ErrHeld) {
			t.Error(err)
		}
		var waiting sync.WaitGroup
		waiting.Go(func() { _ = locks.Do(t.Context(), "order:42", func(context.Context) error { return nil }) })
		time.Sleep(5 * time.Second)
		early := inspector.New(locks, inspector.WithRecorder(seen))
		glance := watch(t, early, "")
		if v := glance.next(); v.Health.Held != 1 || v.Health.Waiting != 1 {
			t.Errorf("while one waits: %+v", v.Health)
		}
		glance.leave()
		early.Close()
		if err := x.Release(t.Context()); err != nil {
			t.Error(err)
		}
		waiting.Wait()
		y := acquire(t, locks, "order:42", core.WithMaxHold(time.Second))
		<-y.Context().Done()
		z := acquire(t, locks, "order:7")
		time.Sleep(time.Second)

		page := inspector.New(locks, inspector.WithRecorder(seen))
		defer page.Close()
		b := watch(t, page, "")
		v := b.next()
		b.leave()
		if !v.Health.Recorded || v.Health.Held != 1 || v.Health.Waiting != 0 || v.Health.Lost != 1 || told.Load() != 4 {
			t.Errorf("%+v, %d", v.Health, told.Load())
		}
		if c := v.Contended; len(c) != 1 || c[0].Name != "order:42" || c[0].Waits != 1 || c[0].Conflicts != 1 || c[0].Losses != 1 {
			t.Errorf("%+v", c)
		}
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/history?name=order:42", http.NoBody))
		var h struct {
			Holds []struct{ End, Fence string }
			Waits []struct {
				From, To int64
				End      string
			}
			Marks []struct{ Kind string }
		}
		backendtest.OK(t, json.Unmarshal(w.Body.Bytes(), &h))
		if len(h.Holds) != 3 || h.Holds[0].End != "released" || h.Holds[2].End != "lost: max-hold" || h.Holds[0].Fence != fmt.Sprint(x.Fence()) {
			t.Errorf("%+v", h.Holds)
		}
		if len(h.Waits) != 1 || h.Waits[0].To-h.Waits[0].From != 5000 || h.Waits[0].End != "granted" || len(h.Marks) != 2 {
			t.Errorf("%+v, %+v", h.Waits, h.Marks)
		}
		if err := z.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// get asks for something.
func get(page http.Handler, path string) (status int, text string) {
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	return w.Code, w.Body.String()
}

func TestAPageAboutAPrefixTellsOfNoOtherName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen, store := inspector.NewRecorder(), memlock.New()
		locks := newLocker(t, store, core.WithObserver(seen.Observe))
		for _, name := range []string{"order:42", "secret"} {
			acquire(t, locks, name)
			_, _ = locks.TryAcquire(t.Context(), name) // a conflict
			backendtest.OK(t, locks.Do(t.Context(), name+":done", func(context.Context) error { return nil }, core.WithDedup(time.Hour)))
			store.SetDown(true)
			_, _ = locks.TryAcquire(t.Context(), name+":down") // an outage
			store.SetDown(false)
		}
		time.Sleep(time.Second)
		page := inspector.New(locks, inspector.WithRecorder(seen), inspector.WithPrefix("order:"))
		defer page.Close()
		b := watch(t, page, "")
		var v view
		text := <-b.data
		backendtest.OK(t, json.Unmarshal([]byte(text), &v))
		b.leave()
		if len(v.Names) != 1 || len(v.Contended) != 1 || v.Contended[0].Name != "order:42" || !strings.Contains(text, `"outages":2`) || strings.Contains(text, "secret") {
			t.Errorf("%s", text)
		}
		if status, text := get(page, "/history?name=secret"); status != 403 {
			t.Errorf("history: %d, %s", status, text)
		}
		if status, text := get(page, "/markers"); status != 200 || !strings.Contains(text, "order:42:done") || strings.Contains(text, "secret") {
			t.Errorf("markers: %d, %s", status, text)
		}
	})
}

// slowly has each walk take a while.
func slowly(d time.Duration) func(context.Context) error {
	return func(context.Context) error { time.Sleep(d); return nil }
}

func TestAllWhoAskForMarkersShareAWalk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disturbed{Store: memlock.New(), before: slowly(time.Second)}
		locks := newLocker(t, d)
		work := func(context.Context) error { return nil }
		backendtest.OK(t, locks.Do(t.Context(), "order:42", work, core.WithDedup(time.Hour), core.WithDedupScope("pay")))
		page := inspector.New(locks)
		defer page.Close()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range 60 {
					if status, text := get(page, "/markers?search=PAY"); status != 200 || !strings.Contains(text, `"name":"order:42"`) {
						t.Errorf("%d, %s", status, text)
					}
					time.Sleep(time.Second)
				}
			})
		}
		all.Wait()
		if n := d.walks.Load(); n < 2 || n > 4 { // walks of a second, in a minute
			t.Errorf("%d walks", n)
		}
		for _, query := range []string{"?name=order:4", "?search=x"} {
			if _, text := get(page, "/markers"+query); !strings.Contains(text, `"markers":[]`) {
				t.Errorf("%s: %s", query, text)
			}
		}
	})
}

func TestAMarkerIsRemovedByWhomTheServiceAllowsAndThatIsAudited(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, memlock.New())
	var record bytes.Buffer
	var allowed error
	page := inspector.New(locks, inspector.WithLogger(slog.New(slog.NewTextHandler(&record, nil))),
		inspector.WithAuthorization(func(_ *http.Request, a inspector.Action) (string, error) {
			if !a.Marker || a.Name != "order:42" || a.Scope != "pay" || a.Handle != "" {
				t.Errorf("%+v", a)
			}
			return "alice", allowed
		}))
	defer page.Close()
	runs := 0
	work := func(context.Context) error { runs++; return nil }
	do := func() error {
		return locks.Do(t.Context(), "order:42", work, core.WithDedup(time.Hour), core.WithDedupScope("pay"))
	}
	backendtest.OK(t, do())
	get(page, "/markers") // it is remembered from now on
	unmark := func(r *http.Request) { r.URL.Path = "/locks/unmark" }
	for what, body := range map[string]string{"a handle": `{"name":"order:42","handle":"x"}`, "no name": `{"scope":"pay"}`} {
		if status, text := post(page, body, unmark); status != 400 || record.Len() > 0 {
			t.Errorf("%s: %d, %s", what, status, text)
		}
	}
	const body = `{"name":"order:42","scope":"pay"}`
	allowed = errors.New("not now")
	if status, _ := post(page, body, unmark); status != 403 || !strings.Contains(record.String(), "not allowed") || !errors.Is(do(), core.ErrDuplicate) {
		t.Errorf("%d, %s", status, record.String())
	}
	record.Reset()
	allowed = nil
	if status, text := post(page, body, unmark); status != 200 || !strings.Contains(text, "removed") {
		t.Errorf("%d, %s", status, text)
	}
	for _, want := range []string{"level=WARN", `msg="holdfast: remove marker"`, "name=order:42 ", "scope=pay ", "result=removed ", "by=alice "} {
		if !strings.Contains(record.String(), want) {
			t.Errorf("no %q in %s", want, record.String())
		}
	}
	if _, text := get(page, "/markers"); !strings.Contains(text, `"markers":[]`) {
		t.Errorf("it is still shown: %s", text)
	}
	if status, text := post(page, body, unmark); status != 409 || !strings.Contains(text, "no such marker") {
		t.Errorf("a second time: %d, %s", status, text)
	}
	if err := do(); err != nil || runs != 2 {
		t.Errorf("%v, %d runs", err, runs)
	}
}

// post asks for a release, as the page does unless change says otherwise.
func post(page http.Handler, body string, change func(*http.Request)) (status int, text string) {
	r := httptest.NewRequest(http.MethodPost, "/locks/release", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Holdfast-Inspector", "1")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	page.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestAReleaseIsForWhomTheServiceAllowsAndIsAudited(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, memlock.New(), core.WithRenewEvery(50*time.Millisecond))
	var record bytes.Buffer
	page := inspector.New(locks, inspector.WithPrefix("order:"), inspector.WithLogger(slog.New(slog.NewTextHandler(&record, nil))),
		inspector.WithAuthorization(func(r *http.Request, _ inspector.Action) (string, error) {
			who := r.Header.Get("X-User")
			if who != "alice" {
				return who, errors.New("not alice")
			}
			return who, nil
		}))
	defer page.Close()
	x := acquire(t, locks, "order:42")
	info, err := operate.New(locks).Inspect(t.Context(), "order:42")
	backendtest.OK(t, err)
	body := func(handle string) string { return fmt.Sprintf(`{"name":"order:42","handle":%q}`, handle) }
	alice := func(r *http.Request) { r.Header.Set("X-User", "alice") }
	for _, c := range []struct {
		what, body string
		change     func(*http.Request)
		status     int
		audit      string
	}{
		{"no header of our own", body(info.Handle), func(r *http.Request) { alice(r); r.Header.Del("X-Holdfast-Inspector") }, 403, ""},
		{"a form", body(info.Handle), func(r *http.Request) { alice(r); r.Header.Set("Content-Type", "text/plain") }, 403, ""},
		{"another site", body(info.Handle), func(r *http.Request) { alice(r); r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403, ""},
		{"a sister site", body(info.Handle), func(r *http.Request) { alice(r); r.Header.Set("Sec-Fetch-Site", "same-site") }, 403, ""},
		{"mallory", body(info.Handle), func(r *http.Request) { r.Header.Set("X-User", "mallory") }, 403, "not allowed"},
		{"no JSON", "{", alice, 400, ""},
		{"no handle", `{"name":"order:42"}`, alice, 400, ""},
		{"a large one", `{"name":"` + strings.Repeat("x", 1<<20) + `"}`, alice, 400, ""},
		{"another prefix", `{"name":"report","handle":"x"}`, alice, 403, ""},
		{"another handle", body("0123456789abcdef"), alice, 409, "another holder"},
	} {
		record.Reset()
		status, text := post(page, c.body, c.change)
		if status != c.status || !strings.Contains(record.String(), c.audit) || c.audit == "" && record.Len() > 0 || strings.Contains(text, "alice") {
			t.Errorf("%s: %d, %s, %s", c.what, status, text, record.String())
		}
	}
	backendtest.OK(t, x.Err())
	record.Reset()
	status, text := post(page, `{"name":"order:42","handle":"`+info.Handle+`"}`, alice)
	if status != 200 || !strings.Contains(text, "released") {
		t.Errorf("%d, %s", status, text)
	}
	for _, want := range []string{"level=WARN", "name=order:42 ", "handle=" + info.Handle + " ", "result=released ", "by=alice ", "remote="} {
		if !strings.Contains(record.String(), want) {
			t.Errorf("no %q in %s", want, record.String())
		}
	}
	<-x.Context().Done()
	if status, text := post(page, body(info.Handle), alice); status != 409 || !strings.Contains(text, "nobody") {
		t.Errorf("a second time: %d, %s", status, text)
	}
	if status, _ := post(inspector.New(locks), body("x"), alice); status != 403 {
		t.Errorf("without an authorisation: %d", status)
	}
}

func TestThePageWorksUnderAnyPathAndForbidsWhatItDoesNotNeed(t *testing.T) {
	t.Parallel()
	page := inspector.New(newLocker(t, memlock.New()))
	defer page.Close()
	mux := http.NewServeMux()
	mux.Handle("/whole/", page)
	mux.Handle("/cut/", http.StripPrefix("/cut", page))
	mux.Handle("/a/b/bare", http.StripPrefix("/a/b/bare", page))
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/whole/":                {200, "<!doctype html>"},
		"/cut/":                  {200, "<!doctype html>"},
		"/whole/page.js":         {200, "import"},
		"/cut/style.css":         {200, ":root"},
		"/cut/icon.svg":          {200, "<svg"},
		"/cut/history?name=x":    {200, `"name":"x"`},
		"/cut/none":              {404, "nothing here"},
		"/cut/release":           {405, "POST"},
		"/cut/..%2finspector.go": {404, "nothing here"},
		"/a/b/bare?x":            {301, ""},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if w.Code != want.status || !strings.Contains(w.Body.String(), want.text) {
			t.Errorf("%s: %d, %.80s", path, w.Code, w.Body)
		}
		header := w.Result().Header
		csp := header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, header)
		}
		if want.status == 301 && header.Get("Location") != "bare/" {
			t.Errorf("%s: to %s", path, header.Get("Location"))
		}
	}
}
