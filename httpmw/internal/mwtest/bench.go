package mwtest

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// Bench has h answer "POST /orders/42" again and again, without a network. The request's
// context is one that never ends, which spares core a goroutine that would blur the figures.
func Bench(b *testing.B, h http.Handler) {
	b.Helper()
	ctx := context.WithoutCancel(b.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/orders/42", http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	w := &serverWriter{make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

// serverWriter can do what the writer of net/http's HTTP/1 server can.
type serverWriter struct{ header http.Header }

func (w *serverWriter) Header() http.Header                                { return w.header }
func (*serverWriter) WriteHeader(int)                                      {}
func (*serverWriter) Write(p []byte) (int, error)                          { return len(p), nil }
func (*serverWriter) WriteString(s string) (int, error)                    { return len(s), nil }
func (*serverWriter) ReadFrom(r io.Reader) (int64, error)                  { return io.Copy(io.Discard, r) }
func (*serverWriter) Flush()                                               {}
func (*serverWriter) FlushError() error                                    { return nil }
func (*serverWriter) Hijack() (c net.Conn, b *bufio.ReadWriter, err error) { return nil, nil, io.EOF }
func (*serverWriter) CloseNotify() <-chan bool                             { return nil }
func (*serverWriter) SetReadDeadline(time.Time) error                      { return nil }
func (*serverWriter) SetWriteDeadline(time.Time) error                     { return nil }
func (*serverWriter) EnableFullDuplex() error                              { return nil }
