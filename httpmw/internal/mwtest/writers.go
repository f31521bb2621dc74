package mwtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// A lease that is lost soon.
var short = []core.Option{core.WithMaxHold(10 * time.Millisecond)}

func testLoss(t *testing.T, mount Mount, streams bool) {
	partial, flushed := answer{status: http.StatusOK, body: "partial"}, answer{status: http.StatusOK}
	nothing := func(http.ResponseWriter, *http.Request) {}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    answer
		http2   bool
		fails   error
		streams bool // only where a handler writes to the connection
	}{
		"NothingWritten":    {handler: nothing},
		"AnError":           {handler: nothing, fails: errors.New(locktest.Secret)},
		"InformationalOnly": {streams: true, handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints) }},
		"EmptyCopy": {handler: func(w http.ResponseWriter, _ *http.Request) {
			if rf, ok := w.(io.ReaderFrom); ok {
				_, _ = rf.ReadFrom(http.NoBody)
			}
		}},
		"String": {want: partial, handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "partial") }},
		"Copy":   {want: partial, handler: func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }},
		"Status": {want: answer{status: http.StatusAccepted}, handler: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
		}},
		"Flush": {streams: true, want: flushed, handler: func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }},
		"FlushByController": {streams: true, http2: true, want: flushed, handler: func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
		}},
		"Hijack": {streams: true, want: answer{status: http.StatusOK, body: "raw"}, handler: func(w http.ResponseWriter, r *http.Request) {
			hijack(w, func() { <-r.Context().Done() })
		}},
	} {
		if test.streams && !streams {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, mount, Setup{HTTP2: test.http2, Options: short, Fails: test.fails, Handler: func(w http.ResponseWriter, r *http.Request) {
				test.handler(w, r)
				<-r.Context().Done()
				if _, ok := errors.AsType[*core.LostError](context.Cause(r.Context())); !ok {
					t.Errorf("cause: %v, want a *LostError", context.Cause(r.Context()))
				}
			}})
			got := b.do("POST /orders/42", "partial")
			b.handled(1)
			if test.want.status == 0 {
				b.expect(got, rowLost)
			} else if got.status != test.want.status || got.body != test.want.body {
				t.Errorf("answered %d %q, want %d %q", got.status, got.body, test.want.status, test.want.body)
			}
		})
	}
	t.Run("HeadersAreThoseFromBefore", func(t *testing.T) {
		t.Parallel()
		b := start(t, mount, Setup{
			Options: short,
			Outer: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				w.Header().Set("Vary", "Origin")
				w.Header().Set("Set-Cookie", "session=1")
				next.ServeHTTP(w, r)
			},
			Handler: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Add("Set-Cookie", "paid=yes")
				for _, name := range []string{"Location", "Etag", "Last-Modified", "Content-Encoding", "Content-Type", "Cache-Control", "Retry-After"} {
					w.Header().Set(name, "the handler's")
				}
				w.Header().Set("Content-Length", "5")
				w.Header().Del("Vary")
				<-r.Context().Done()
			},
		})
		got := b.do("POST /orders/42", "")
		b.expect(got, rowLost)
		cookies := strings.Join(got.header.Values("Set-Cookie"), "|")
		if cookies != "session=1" || got.header.Get("Vary") != "Origin" || strings.Contains(fmt.Sprint(got.header), "the handler's") {
			t.Errorf("%v", got.header)
		}
	})
}

// hijack answers "raw" by hand, after wait.
func hijack(w http.ResponseWriter, wait func()) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	wait()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
}

func testStream(t *testing.T, mount Mount) {
	run(t, mount, map[string]func(*testing.T, Mount){
		"WhatIsFlushedArrivesWhileTheHandlerRuns": flushed,
		"TheResponseControllerWorks":              controller,
		"WhoHijackedIsNotDone":                    dedupHijack,
	})
}

func flushed(t *testing.T, mount Mount) {
	seen := make(chan struct{})
	b := start(t, mount, Setup{HTTP2: true, Handler: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		w.(http.Flusher).Flush()
		<-seen
	}})
	res, err := b.srv.Client().Post(b.url+"/orders/42", "", http.NoBody)
	locktest.OK(t, err)
	defer res.Body.Close()
	if line, _ := bufio.NewReader(res.Body).ReadString('\n'); line != "first\n" || res.ProtoMajor != 2 || b.free("order:42") {
		t.Errorf("%q by %s, or free while the handler runs", line, res.Proto)
	}
	close(seen)
}

func controller(t *testing.T, mount Mount) {
	for _, http2 := range []bool{false, true} {
		b := start(t, mount, Setup{HTTP2: http2, Handler: func(w http.ResponseWriter, _ *http.Request) {
			c := http.NewResponseController(w)
			err := errors.Join(c.EnableFullDuplex(), c.SetReadDeadline(time.Now().Add(time.Minute)),
				c.SetWriteDeadline(time.Now().Add(time.Minute)), c.Flush())
			_, flusher := w.(http.Flusher) // which handlers and libraries look for
			if _, hijacker := w.(http.Hijacker); err != nil || !flusher || !hijacker {
				t.Errorf("a %T: %v", w, err)
			}
		}})
		if got := b.do("POST /orders/42", ""); got.status != http.StatusOK {
			t.Errorf("answered %d", got.status)
		}
	}
}
