package mwtest

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

func testStream(t *testing.T, mount Mount) {
	run(t, mount, map[string]func(*testing.T, Mount){
		"WhatIsFlushedArrivesWhileTheHandlerRuns": flushed,
		"TheResponseControllerWorks":              controller,
		"WhoHijackedIsNotDone":                    dedupHijack,
		"InformationalHeadersPass":                informational,
	})
}

func flushed(t *testing.T, mount Mount) {
	seen := make(chan struct{})
	b := start(t, mount, Setup{HTTP2: true, Handler: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		w.(http.Flusher).Flush()
		<-seen
		_, _ = io.WriteString(w, "second\n")
	}})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/orders/42", http.NoBody)
	locktest.OK(t, err)
	res, err := b.srv.Client().Do(r)
	locktest.OK(t, err)
	defer res.Body.Close()
	if res.ProtoMajor != 2 {
		t.Errorf("served by %s", res.Proto)
	}
	body := bufio.NewReader(res.Body)
	if line, _ := body.ReadString('\n'); line != "first\n" {
		t.Errorf("first line: %q", line)
	}
	if b.free("order:42") {
		t.Error("free while the handler runs")
	}
	close(seen)
	if line, _ := body.ReadString('\n'); line != "second\n" {
		t.Errorf("second line: %q", line)
	}
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

func informational(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{Handler: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "body")
	}})
	b.passed(b.do("POST /orders/42", ""), "body")
}
