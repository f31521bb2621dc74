package inspector_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/operate"
)

func TestItLooksOnceASecondHoweverManyWatchAndNotAtAllWhenNobodyDoes(t *testing.T) {
	t.Parallel()
	virtual(t, &disturbed{}, func(b *bench) {
		b.acquire(b.locks, "order:42", core.WithLabel("web-7"))
		time.Sleep(time.Minute)
		if n := b.d.walks.Load(); n != 0 {
			b.Errorf("%d looks while nobody watches", n)
		}
		var all []*browser
		for range 50 {
			all = append(all, b.watch(b.page, ""))
		}
		synctest.Wait()
		for range 5 {
			b.glance(b.page, "") // one that is loaded again and again
		}
		time.Sleep(60*time.Second + time.Millisecond)
		if n := b.d.walks.Load(); n != 61 {
			b.Errorf("%d looks in 60 s", n)
		}
		for _, w := range all {
			if v := w.next(); v.Total != 1 || v.Names[0].Name != "order:42" || v.Names[0].Label != "web-7" || v.Names[0].Kind != "exclusive" || v.Release {
				b.Errorf("%+v", v)
			}
			w.leave()
		}
		synctest.Wait()
		before := b.d.walks.Load()
		time.Sleep(time.Minute)
		if n := b.d.walks.Load(); n != before {
			b.Errorf("%d looks after the last one has left", n-before)
		}
	})
}

func TestTheStreamShowsWhatIsSearchedForNodesThatDisagreeAndWhatWentWrong(t *testing.T) {
	t.Parallel()
	var down atomic.Pointer[error]
	virtual(t, &disturbed{before: func(context.Context) error {
		if err := down.Load(); err != nil {
			return *err
		}
		return nil
	}, change: func(info *inspect.LeaseInfo) { // of the nodes one has not answered, and one knows nothing
		info.Nodes = []inspect.NodeInfo{{Held: true, Label: info.Label, Handle: info.Handle, Remaining: info.Remaining}, {Silent: true}, {}}
	}}, func(b *bench) {
		b.acquire(b.locks, "order:42", core.WithLabel("Web-7"))
		b.acquire(b.locks, "report", core.WithShared(), core.WithLabel("Web-8"))
		for search, want := range map[string]int{"": 2, "ORDER": 1, "web-7": 1, "web-8": 1, "x": 0} {
			if v := b.glance(b.page, "?search="+search); v.Total != want {
				b.Errorf("%q: %+v", search, v)
			}
		}
		n := b.glance(b.page, "?search=ORDER").Names[0]
		if want := []node{{Held: true, Label: "Web-7", Handle: n.Handle}, {Silent: true}, {}}; !slices.Equal(n.Nodes, want) {
			b.Errorf("%+v, not %+v", n.Nodes, want)
		}
		w := b.watch(b.page, "")
		gone := errors.New("gone")
		down.Store(&gone)
		time.Sleep(3 * time.Second)
		v := w.next()
		for v.Error == "" {
			v = w.next()
		}
	})
}

func TestCloseEndsTheStreams(t *testing.T) {
	t.Parallel()
	virtual(t, &disturbed{}, func(b *bench) {
		w := b.watch(b.page, "")
		w.next()
		b.page.Close()
		b.page.Close()
		<-w.gone
		<-b.watch(b.page, "").gone
		b.page.Watch(b.Context())
	})
}

func TestARecorderTellsOfThisProcess(t *testing.T) {
	t.Parallel()
	recorded(t, func(b *bench, seen *inspector.Recorder) {
		x := b.acquire(b.locks, "order:42", core.WithTemplate("order:{id}"))
		_, err := b.locks.TryAcquire(b.Context(), "order:42")
		backendtest.Is(b, err, core.ErrHeld)
		waited := backendtest.Next(b, b.locks, "order:42")
		time.Sleep(5 * time.Second)
		if v := b.glance(b.open(inspector.WithRecorder(seen)), ""); v.Health.Held != 1 || v.Health.Waiting != 1 {
			b.Errorf("while one waits: %+v", v.Health)
		}
		backendtest.OK(b, x.Release(b.Context()))
		backendtest.OK(b, <-waited)
		<-b.acquire(b.locks, "order:42", core.WithMaxHold(time.Second)).Context().Done()
		b.acquire(b.locks, "order:7")
		time.Sleep(time.Second)

		page := b.open(inspector.WithRecorder(seen))
		v := b.glance(page, "")
		if !v.Health.Recorded || v.Health.Held != 1 || v.Health.Waiting != 0 || v.Health.Lost != 1 {
			b.Errorf("%+v", v.Health)
		}
		if c := v.Contended; len(c) != 1 || c[0].Name != "order:42" || c[0].Waits != 1 || c[0].Conflicts != 1 || c[0].Losses != 1 {
			b.Errorf("%+v", c)
		}
		h := b.past(page, "order:42")
		if len(h.Holds) != 3 || h.Holds[0].End != "released" || h.Holds[2].End != "lost: max-hold" || h.Holds[0].Fence != fmt.Sprint(x.Fence()) {
			b.Errorf("%+v", h.Holds)
		}
		if len(h.Waits) != 1 || h.Waits[0].To-h.Waits[0].From != 5000 || h.Waits[0].End != "granted" || len(h.Marks) != 2 {
			b.Errorf("%+v, %+v", h.Waits, h.Marks)
		}
	})
}

func TestAPageAboutAPrefixTellsOfNoOtherName(t *testing.T) {
	t.Parallel()
	recorded(t, func(b *bench, seen *inspector.Recorder) {
		for _, name := range []string{"order:42", "secret"} {
			b.acquire(b.locks, name)
			_, _ = b.locks.TryAcquire(b.Context(), name) // a conflict
			backendtest.OK(b, b.locks.Do(b.Context(), name+":done", nothing, core.WithDedup(time.Hour)))
			b.d.SetDown(true)
			_, _ = b.locks.TryAcquire(b.Context(), name+":down") // an outage
			b.d.SetDown(false)
		}
		time.Sleep(time.Second)
		page := b.open(inspector.WithRecorder(seen), inspector.WithPrefix("order:"))
		var v view
		text := <-b.watch(page, "").data
		backendtest.OK(b, json.Unmarshal([]byte(text), &v))
		if len(v.Names) != 1 || len(v.Contended) != 1 || v.Contended[0].Name != "order:42" || !strings.Contains(text, `"outages":2`) || strings.Contains(text, "secret") {
			b.Errorf("%s", text)
		}
		if status, text := get(page, "/history?name=secret"); status != 403 {
			b.Errorf("history: %d, %s", status, text)
		}
		if status, text := get(page, "/markers"); status != 200 || !strings.Contains(text, "order:42:done") || strings.Contains(text, "secret") {
			b.Errorf("markers: %d, %s", status, text)
		}
	})
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
	x := backendtest.Acquire(t, locks, "order:42")
	info, err := operate.New(locks).Inspect(t.Context(), "order:42")
	backendtest.OK(t, err)
	body := func(handle string) string { return fmt.Sprintf(`{"name":"order:42","handle":%q}`, handle) }
	alice := func(r *http.Request) { r.Header.Set("X-User", "alice") }
	for _, c := range []struct {
		what, body string
		change     func(*http.Request)
		status     int
		says       string
		audit      string
	}{
		{"no header of our own", body(info.Handle), func(r *http.Request) { alice(r); r.Header.Del("X-Holdfast-Inspector") }, 403, "", ""},
		{"a form", body(info.Handle), func(r *http.Request) { alice(r); r.Header.Set("Content-Type", "text/plain") }, 403, "", ""},
		{"another site", body(info.Handle), func(r *http.Request) { alice(r); r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403, "", ""},
		{"a sister site", body(info.Handle), func(r *http.Request) { alice(r); r.Header.Set("Sec-Fetch-Site", "same-site") }, 403, "", ""},
		{"mallory", body(info.Handle), func(r *http.Request) { r.Header.Set("X-User", "mallory") }, 403, "", "not allowed"},
		{"no JSON", "{", alice, 400, "", ""},
		{"no handle", `{"name":"order:42"}`, alice, 400, "", ""},
		{"a large one", `{"name":"` + strings.Repeat("x", 1<<20) + `"}`, alice, 400, "", ""},
		{"another prefix", `{"name":"report","handle":"x"}`, alice, 403, "", ""},
		{"another handle", body("0123456789abcdef"), alice, 409, "", "another holder"},
		{"alice", body(info.Handle), alice, 200, "released", "name=order:42 handle=" + info.Handle + " result=released by=alice remote="},
		{"alice, a second time", body(info.Handle), alice, 409, "nobody", ""},
	} {
		if c.status == 200 {
			backendtest.OK(t, x.Err())
		}
		record.Reset()
		status, text := post(page, "/locks/release", c.body, c.change)
		if status != c.status || !strings.Contains(text, c.says) || strings.Contains(text, "alice") {
			t.Errorf("%s: %d, %s", c.what, status, text)
		}
		audited := strings.Contains(record.String(), `level=WARN msg="holdfast: force release"`)
		if audited != (c.audit != "" || c.says != "") || !strings.Contains(record.String(), c.audit) {
			t.Errorf("%s: %s", c.what, record.String())
		}
	}
	<-x.Context().Done()
	if status, _ := post(inspector.New(locks), "/locks/release", body("x"), alice); status != 403 {
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
