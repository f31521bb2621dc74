package inspector_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
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
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what tests break on purpose is no news
	goleak.VerifyTestMain(m)
}

// bench is a lock service, one process on it, and the page of that process.
type bench struct {
	*testing.T

	d     *disturbed
	locks *core.Locker
	page  *inspector.Handler
}

// virtual runs f in virtual time.
func virtual(t *testing.T, d *disturbed, f func(b *bench), opts ...inspector.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d.Store = memlock.New()
		b := &bench{T: t, d: d}
		b.locks = b.locker()
		b.page = b.open(opts...)
		f(b)
	})
}

// recorded is a bench whose process has a recorder. The test opens its pages.
func recorded(t *testing.T, f func(b *bench, seen *inspector.Recorder)) {
	t.Helper()
	virtual(t, &disturbed{}, func(b *bench) {
		seen := inspector.NewRecorder()
		b.locks = b.locker(core.WithObserver(seen.Observe))
		f(b, seen)
	})
}

// locker is that of another process.
func (b *bench) locker(opts ...core.NewOption) *core.Locker {
	b.Helper()
	return newLocker(b.T, b.d, opts...)
}

func (b *bench) open(opts ...inspector.Option) *inspector.Handler {
	page := inspector.New(b.locks, opts...)
	b.Cleanup(page.Close)
	return page
}

func (b *bench) acquire(locks *core.Locker, name string, opts ...core.Option) *core.Lease {
	b.Helper()
	x, err := locks.Acquire(b.Context(), name, opts...)
	backendtest.OK(b, err)
	b.Cleanup(func() { _ = x.Release(context.Background()) })
	return x
}

// waits has another process wait for a name until the test ends.
func (b *bench) waits(name string) {
	b.Helper()
	locks := b.locker()
	ctx, cancel := context.WithCancel(b.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = locks.Acquire(ctx, name)
	}()
	b.Cleanup(func() { cancel(); <-gone })
}

func newLocker(t *testing.T, d driver.Driver, opts ...core.NewOption) *core.Locker {
	t.Helper()
	locks, err := core.New(d, opts...)
	backendtest.OK(t, err)
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	return locks
}

func nothing(context.Context) error { return nil }

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

// slowly has each walk take a while.
func slowly(d time.Duration) func(context.Context) error {
	return func(context.Context) error { time.Sleep(d); return nil }
}

// browser reads a stream, as far as it needs to.
type browser struct {
	*bench

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

// watch opens the stream of a page, until leave or the end of the test.
func (b *bench) watch(page http.Handler, query string) *browser {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &browser{b, cancel, make(chan string, 1000), make(chan struct{})}
	read, write := io.Pipe()
	go func() {
		defer close(w.gone)
		page.ServeHTTP(pipe{httptest.NewRecorder(), write}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events"+query, http.NoBody))
		_ = write.Close()
	}()
	go func() {
		defer close(w.data)
		for scan := bufio.NewScanner(read); scan.Scan(); {
			if text, ok := strings.CutPrefix(scan.Text(), "data: "); ok {
				w.data <- text
			}
		}
	}()
	b.Cleanup(w.leave)
	return w
}

type view struct {
	Error   string
	Total   int
	Waiting int
	Release bool
	Names   []struct {
		Name, Label, Kind, Fence, Handle, Template string
		TTL, Full                                  int64
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

func (w *browser) next() (v view) {
	w.Helper()
	backendtest.OK(w, json.Unmarshal([]byte(<-w.data), &v))
	return v
}

func (w *browser) leave() { w.cancel(); <-w.gone }

// glance is the first that a page shows.
func (b *bench) glance(page http.Handler, query string) view {
	b.Helper()
	w := b.watch(page, query)
	defer w.leave()
	return w.next()
}

// past is what a page tells of a name's past.
type past struct {
	Holds []hold
	Waits []wait
	Marks []struct{ Kind string }
}

type hold struct {
	From, To          int64
	Label, Fence, End string
}

type wait struct {
	From, To int64
	End      string
}

func (b *bench) past(page http.Handler, name string) (p past) {
	b.Helper()
	_, text := get(page, "/history?name="+name)
	backendtest.OK(b, json.Unmarshal([]byte(text), &p))
	return p
}

// get asks for something.
func get(page http.Handler, path string) (status int, text string) {
	w := httptest.NewRecorder()
	page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	return w.Code, w.Body.String()
}

// post asks for something to be done, as the page does unless change says otherwise.
func post(page http.Handler, path, body string, change func(*http.Request)) (status int, text string) {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
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
