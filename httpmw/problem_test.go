package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/httpmw"
)

func TestRetryAfterIsRoundedUp(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]string{
		0: "", time.Nanosecond: "1", time.Second: "1", time.Second + 1: "2", 90 * time.Second: "90",
	} {
		w := httptest.NewRecorder()
		(&httpmw.Problem{Status: http.StatusConflict, RetryAfter: after}).ServeHTTP(w, nil)
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("%s: %q, want %q", after, got, want)
		}
	}
}
