package inspector_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// unflushable is a ResponseWriter of some middleware that hides what the server's can do.
type unflushable struct{ http.ResponseWriter }

func TestAStreamThatCannotBeFlushedIsAnError(t *testing.T) {
	t.Parallel()
	page := inspector.New(newLocker(t, memlock.New()))
	defer page.Close()
	w := httptest.NewRecorder()
	page.ServeHTTP(unflushable{w}, httptest.NewRequest(http.MethodGet, "/events", http.NoBody))
	if text := w.Body.String(); w.Code != http.StatusInternalServerError || !strings.HasPrefix(text, `{"error":"some middleware`) ||
		w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d, %v, %s", w.Code, w.Header(), text)
	}
}

func TestAHeadOfTheStreamEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		page := inspector.New(newLocker(t, memlock.New()))
		defer page.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodHead, "/events", http.NoBody))
		if ctx.Err() != nil {
			t.Error("it goes on, and keeps the connection")
		}
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("%d, %v", w.Code, w.Header())
		}
	})
}

// hanging is a lock service whose client does not heed a context, until the test lets it go.
type hanging struct {
	*disturbed

	let chan struct{}
}

func (h hanging) Inspect(context.Context, string) (inspect.LeaseInfo, error) {
	<-h.let
	return inspect.LeaseInfo{}, nil
}

// limited is a ResponseWriter with a write deadline.
type limited struct {
	*httptest.ResponseRecorder

	deadline time.Time
	failed   bool
}

func (l *limited) SetWriteDeadline(at time.Time) error {
	l.deadline = at
	return nil
}

func (l *limited) Write(b []byte) (int, error) {
	if !l.deadline.IsZero() && !time.Now().Before(l.deadline) {
		l.failed = true
		return 0, os.ErrDeadlineExceeded
	}
	return l.ResponseRecorder.Write(b)
}

func TestAStreamOutlivesALockServiceThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		d := hanging{&disturbed{Store: memlock.New(), before: func(context.Context) error { <-let; return nil }}, let}
		page := inspector.New(newLocker(t, d))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w := &limited{ResponseRecorder: httptest.NewRecorder()}
		page.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", http.NoBody))
		if ctx.Err() == nil || w.failed || strings.Count(w.Body.String(), ": nothing new") < 3 {
			t.Errorf("ended early, or without its heartbeats: %q", w.Body.String())
		}
		close(let)
		page.Close()
	})
}
