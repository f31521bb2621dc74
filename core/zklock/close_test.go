package zklock

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Where the server is far away, callers leave while their requests are under way. What comes of them is gone when Close returns,
// and the connection may be in use for other things after that.
func TestCloseWaitsForWhatCallersHaveLeftBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, longSession)
	s, c := w.store, claim("left", "token")
	within := func(d time.Duration, do func(ctx context.Context) error) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		if m := driver.Explain(do(ctx)); !m.Open() {
			t.Errorf("answered within %s: %+v", d, m)
		}
	}
	take(t, s, c)
	w.proxy.SetDelay(100*time.Millisecond, 100*time.Millisecond)
	within(10*time.Millisecond, func(ctx context.Context) error { return s.Release(ctx, c) })
	ok(t, s.Close(t.Context()))
	if _, _, err := w.direct.Children("/holdfast/left"); err != zk.ErrNoNode { //nolint:errorlint // the client's own
		t.Errorf("the znode of the name: %v", err)
	}
	w.proxy.BlackHole(true)
	within(10*time.Millisecond, func(ctx context.Context) error { _, err := s.Acquire(ctx, c); return err })
	err := s.Close(t.Context())
	w.proxy.Reset() // else the client goes on for long
	if err == nil {
		t.Error("it is closed while a request is under way")
	}
}
