package mwtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/holdfast-go/holdfast/internal/locktest"
)

// document is a JSON body of n bytes.
func document(n int) string {
	const head, tail = `{"id":42,"pad":"`, `"}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

// echoBody answers with what it read.
func echoBody(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusTeapot)
	}
	_ = r.Body.Close()
	_, _ = w.Write(body)
}

func testBody(t *testing.T, mount Mount) {
	run(t, mount, map[string]func(*testing.T, Mount){
		"LengthAndTrailersStay":                     trailers,
		"TheLimitIsExactAndARefusedBodyIsLeft":      bodyLimit,
		"ABodyThatBreaksOffIs400OrAnOuterLimits413": brokenBody,
		"FilesOfAFormAreRemoved":                    formFiles,
		"ARefusedUploadIsNotSent":                   refusedUpload,
		"NothingIsLockedWhileABodyComesIn":          slowBody,
	})
}

// request is one to /plain with a JSON body. One that is no strings.Reader is sent in chunks.
func (b *bench) request(body io.Reader) *http.Request {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+"/plain", body)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}

func trailers(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{Key: "order:{body:id}", Handler: func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %d", body, r.Trailer.Get("X-Sum"), r.ContentLength)
	}})
	r := b.request(io.NopCloser(strings.NewReader(`{"id":42}`)))
	r.Trailer = http.Header{"X-Sum": {"abc"}}
	b.passed(b.send(r), `{"id":42} abc -1`)
	b.passed(b.do("POST /plain", `{"id":42}`, asJSON), `{"id":42}  9`)
}

func bodyLimit(t *testing.T, mount Mount) {
	var rest bytes.Buffer
	var read atomic.Int64
	b := start(t, mount, Setup{Key: "order:{body:id}", MaxBody: 1000, Handler: echoBody, Outer: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		read.Store(0)
		counting(&read)(w, r, next)
		if n := read.Load(); r.ContentLength > 1000 && n > 0 {
			t.Errorf("%d bytes were read of a body that says it is too large", n)
		}
		rest.Reset()
		_, _ = io.Copy(&rest, r.Body)
	}})
	b.passed(b.send(b.request(strings.NewReader(document(1000)))), document(1000))
	for _, n := range []int{1001, 3000} {
		for _, body := range []io.Reader{strings.NewReader(document(n)), io.MultiReader(strings.NewReader(document(n)))} {
			b.expect(b.send(b.request(body)), rowTooLarge)
			if rest.String() != document(n) {
				t.Errorf("%d bytes of %d are left", rest.Len(), n)
			}
		}
	}
	b.handled(1)
	if !b.free("order:42") {
		t.Error("locked")
	}
	b = start(t, mount, Setup{Key: "order:{body:id}", MaxBody: math.MaxInt64, Handler: echoBody}) // which is none
	b.passed(b.send(b.request(strings.NewReader(document(100)))), document(100))
}

func brokenBody(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{Key: "order:{body:id}", Outer: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.Body = http.MaxBytesReader(w, r.Body, 50)
		next.ServeHTTP(w, r)
	}})
	b.expect(b.do("POST /plain", document(100), asJSON), rowTooLarge)
	b.expect(b.do("POST /plain", `{"id":42}`+strings.Repeat(" ", 100), asJSON), rowTooLarge)
	b.handled(0)
	b = start(t, mount, Setup{Key: "order:{body:id}", Outer: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, 50), iotest.ErrReader(io.ErrUnexpectedEOF)))
		next.ServeHTTP(w, r)
	}})
	got := b.do("POST /plain", document(100), asJSON)
	b.expect(got, rowBadKey)
	b.blames(got, "body:id", "invalid")
	b.handled(0)
}

// The server removes the files of a multipart form if it finds the form in its own request.
func formFiles(t *testing.T, mount Mount) {
	var path string
	b := start(t, mount, Setup{Key: "job:upload", Handler: func(_ http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil { //nolint:gosec // so the file goes to disk
			t.Error(err)
			return
		}
		f, err := r.MultipartForm.File["sku"][0].Open()
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		if file, ok := f.(*os.File); ok {
			path = file.Name()
		}
	}})
	if got := b.do("POST /plain", part, asPart); got.status != http.StatusOK {
		t.Errorf("answered %d %s", got.status, got.body)
	}
	b.srv.Close() // which waits for the server's own cleaning up
	if _, err := os.Stat(path); path == "" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q: %v, want a file that has gone", path, err)
	}
}

// A client that sends its body byte by byte keeps nobody out: a key in the body is known only when it is there.
func slowBody(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{Key: "order:{body:id}", Handler: echoBody})
	body, upload := io.Pipe()
	answered := make(chan answer)
	go func() { answered <- b.send(b.request(body)) }()
	_, _ = io.WriteString(upload, `{"id":42`)
	b.passed(b.do("POST /plain", `{"id":42}`, asJSON), `{"id":42}`)
	_, _ = io.WriteString(upload, `}`)
	_ = upload.Close()
	b.passed(<-answered, `{"id":42}`)
}

// A client that expects "100 Continue" gets it, and sends its body, only if somebody reads that: the handler, or the middleware if
// the key is in it.
func refusedUpload(t *testing.T, mount Mount) {
	for key, want := range map[string]bool{"order:{id|int}": false, "order:{body:id}": true} {
		var read atomic.Int64
		b := start(t, mount, Setup{Key: key, Outer: counting(&read)})
		locktest.Hold(t, b.other, "order:42")
		b.expect(b.do("POST /orders/42", document(100), asJSON), rowHeld)
		if got := read.Load() > 0; got != want {
			t.Errorf("%s: the body was read: %t", key, got)
		}
	}
}

// counting counts what is read of bodies.
func counting(n *atomic.Int64) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.Body = &counted{r.Body, n}
		next.ServeHTTP(w, r)
	}
}

type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}
