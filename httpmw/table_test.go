package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestTheTable(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"order:{nothing", "job:nightly"} { // a key that cannot work, and a nil handler
		locktest.Panics(t, "httpmw: ", func() { httpmw.Lock(locktest.Memory(t), key)(nil) })
	}
	mwtest.Run(t, mwtest.Framework{
		Lock: mountLock, Bind: mountBind, Streams: true,
		Routes: []mwtest.Route{
			{Key: "file:{path|text}", Route: "/files/{path...}", Path: "/files/a/b", Status: http.StatusOK, Name: "file:a/b"},
			{Key: "file:{path|text}", Route: "/files/{path...}", Path: "/files/", Status: http.StatusBadRequest},
			{Key: "file:{pat|text}", Route: "/files/{path...}", Path: "/files/a", Status: http.StatusInternalServerError},
			{Key: "order:{id|text}", Route: "/orders/{id}", Path: "/orders/%2534", Status: http.StatusOK, Name: "order:%2534"},
			{Key: "{a|int}:{ab|int}", Route: "/{ab}/{a}", Path: "/1/2", Status: http.StatusOK, Name: "2:1"},
		},
	})
}

func config(s mwtest.Setup) httpmw.Config {
	return httpmw.Config{
		Locker: s.Locker, Key: s.Key, KeyFunc: s.KeyFunc, Options: s.Options, Skipper: s.Skipper, MaxBody: s.MaxBody, Logger: s.Logger,
		ErrorHandler: s.ErrorHandler,
	}
}

func mountLock(s mwtest.Setup) (http.Handler, error) {
	mw, err := httpmw.New(config(s))
	if err != nil {
		return nil, err
	}
	h := mw(http.HandlerFunc(s.Answer))
	mux := http.NewServeMux()
	for _, path := range s.Paths("{id}") {
		for _, method := range []string{"GET ", "POST ", "PUT "} {
			mux.Handle(method+path, h)
		}
	}
	return mux, nil
}

func mountBind(s mwtest.Setup) (http.Handler, error) {
	return httpmw.NewBind(config(s), httpmw.JSON[mwtest.Pay], s.Bound)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
