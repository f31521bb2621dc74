package inspector_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestAllWhoAskForMarkersShareAWalk(t *testing.T) {
	t.Parallel()
	virtual(t, &disturbed{before: slowly(time.Second)}, func(b *bench) {
		backendtest.OK(b, b.locks.Do(b.Context(), "order:42", nothing, core.WithDedup(time.Hour), core.WithDedupScope("pay")))
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range 60 {
					if status, text := get(b.page, "/markers?search=PAY"); status != 200 || !strings.Contains(text, `"name":"order:42"`) {
						b.Errorf("%d, %s", status, text)
					}
					time.Sleep(time.Second)
				}
			})
		}
		all.Wait()
		if n := b.d.walks.Load(); n < 2 || n > 4 { // walks of a second, in a minute
			b.Errorf("%d walks", n)
		}
		for _, query := range []string{"?name=order:4", "?search=x"} {
			if _, text := get(b.page, "/markers"+query); !strings.Contains(text, `"markers":[]`) {
				b.Errorf("%s: %s", query, text)
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
			if want := (inspector.Action{Marker: true, Name: "order:42", Scope: "pay"}); a != want {
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
	const body = `{"name":"order:42","scope":"pay"}`
	for _, c := range []struct {
		body    string
		allowed error
		status  int
		audit   string
	}{
		{`{"name":"order:42","handle":"x"}`, nil, 400, ""},
		{`{"scope":"pay"}`, nil, 400, ""},
		{body, errors.New("not now"), 403, "not allowed"},
		{body, nil, 200, `level=WARN msg="holdfast: remove marker" name=order:42 scope=pay result=removed by=alice `},
		{body, nil, 409, "no such marker"},
	} {
		record.Reset()
		allowed = c.allowed
		if c.status == 200 {
			backendtest.Is(t, do(), core.ErrDuplicate)
		}
		status, text := post(page, "/locks/unmark", c.body, nil)
		if status != c.status || !strings.Contains(record.String(), c.audit) || c.audit == "" && record.Len() > 0 {
			t.Errorf("%s: %d, %s, %s", c.body, status, text, record.String())
		}
		if c.status == 200 && !strings.Contains(text, "removed") || c.status == 409 && !strings.Contains(text, "no such marker") {
			t.Errorf("%d, %s", status, text)
		}
	}
	if _, text := get(page, "/markers"); !strings.Contains(text, `"markers":[]`) {
		t.Errorf("it is still shown: %s", text)
	}
	if err := do(); err != nil || runs != 2 {
		t.Errorf("%v, %d runs", err, runs)
	}
}

// mute is a lock service that does not answer until the test lets it.
func mute(answers *atomic.Bool) *disturbed {
	return &disturbed{before: func(ctx context.Context) error {
		if answers.Load() {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}
}

func TestMarkersAreShownSoonAfterAShortOutage(t *testing.T) {
	t.Parallel()
	var answers atomic.Bool
	virtual(t, mute(&answers), func(b *bench) {
		if status, text := get(b.page, "/markers"); status != 503 {
			b.Errorf("%d, %s", status, text)
		}
		answers.Store(true)
		time.Sleep(20*time.Second + time.Millisecond)
		if status, text := get(b.page, "/markers"); status != 200 {
			b.Errorf("20 s after the outage: %d, %s", status, text)
		}
	})
}

func TestMarkersThatAreNeverFoundInTimeAreLookedForATwentiethOfTheTime(t *testing.T) {
	t.Parallel()
	virtual(t, mute(new(atomic.Bool)), func(b *bench) {
		const all = 10000 * time.Second
		var looked time.Duration
		for began := time.Now(); time.Since(began) < all; time.Sleep(time.Second) {
			asked := time.Now()
			get(b.page, "/markers")
			looked += time.Since(asked)
		}
		if looked > all/15 {
			b.Errorf("%s of %s", looked, all)
		}
	})
}
