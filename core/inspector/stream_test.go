package inspector_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
