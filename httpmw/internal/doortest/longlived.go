package doortest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// lines answers each line in capital letters, over a connection that it takes over as a
// WebSocket would.
func lines(t *testing.T, w http.ResponseWriter, r *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	defer context.AfterFunc(r.Context(), func() { _ = conn.Close() })()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n")
	for {
		line, err := rw.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, strings.ToUpper(line))
	}
}

func upgraded(t *testing.T, door Door) {
	finished := make(chan struct{}, 1)
	setup := Setup{Handler: func(w http.ResponseWriter, r *http.Request) { lines(t, w, r) }}
	setup.Outer = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			finished <- struct{}{}
		})
	}
	b := start(t, door, setup)
	conn, answers := b.upgrade("/orders/42")
	for range 2 {
		_, _ = io.WriteString(conn, "hello\n")
		if line, err := answers.ReadString('\n'); line != "HELLO\n" {
			t.Errorf("answered %q, %v", line, err)
		}
		if b.free("order:42") {
			t.Error("free while the connection is in use")
		}
	}
	_ = conn.Close()
	<-finished
	if !b.free("order:42") {
		t.Error("not released after the handler returned")
	}

	setup.Options = short
	b = start(t, door, setup)
	_, answers = b.upgrade("/orders/42")
	if _, err := answers.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("%v, want the end of the connection with that of the lease", err)
	}
	<-finished
}

func (b *bench) upgrade(path string) (net.Conn, *bufio.Reader) {
	b.t.Helper()
	conn, err := new(net.Dialer).DialContext(b.t.Context(), "tcp", b.srv.Listener.Addr().String())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+path, http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "lines")
	if err := r.Write(conn); err != nil {
		b.t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	res, err := http.ReadResponse(answers, r) //nolint:bodyclose // a 101 has none
	if err != nil {
		b.t.Fatal(err)
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		b.t.Fatalf("answered %d", res.StatusCode)
	}
	return conn, answers
}

// After the first byte the client's answer stays what it is. Who runs the service is told.
func lateLoss(t *testing.T, door Door) {
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost := make(chan core.Event, 1)
			locks := NewLocker(t, &Backend{Store: memlock.New()}, core.WithObserver(func(e core.Event) {
				if e.Kind == core.EventLost {
					lost <- e
				}
			}))
			b := start(t, door, Setup{
				HTTP2: http2, Locker: locks, Options: short,
				Handler: func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, "data: 1\n\n")
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				},
			})
			got := b.do("GET /orders/42", "")
			b.passed(got, "data: 1\n\n")
			if kind := got.header.Get("Content-Type"); kind != "text/event-stream" {
				t.Errorf("Content-Type: %q", kind)
			}
			select {
			case e := <-lost:
				if e.Name != "order:42" || e.Template != "order:{id|int}" || e.Reason != core.ReasonMaxHold {
					t.Errorf("observed %+v", e)
				}
			case <-time.After(time.Minute):
				t.Error("nobody was told")
			}
		})
	}
}

// A handler that has to tell its client breaks off.
func breaksOff(t *testing.T, door Door) {
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, door, Setup{
				HTTP2: http2, Options: short,
				Handler: func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, "half")
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
					panic(http.ErrAbortHandler)
				},
			})
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/orders/42", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			res, err := b.srv.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); string(body) != "half" || err == nil {
				t.Errorf("read %q, %v, want a part and an error", body, err)
			}
		})
	}
}
