package mwtest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
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
		"TheLargestLimitIsNone":                     unlimitedBody,
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
		_, _ = io.WriteString(w, string(body)+" "+r.Trailer.Get("X-Sum"))
		if r.ContentLength != -1 {
			t.Errorf("ContentLength %d of a chunked body", r.ContentLength)
		}
	}})
	r := b.request(io.NopCloser(strings.NewReader(`{"id":42}`)))
	r.Trailer = http.Header{"X-Sum": {"abc"}}
	b.passed(b.send(r), `{"id":42} abc`)

	b = start(t, mount, Setup{Key: "order:{body:id}", Handler: func(_ http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 100 {
			t.Errorf("ContentLength %d, want 100", r.ContentLength)
		}
	}})
	b.do("POST /plain", document(100), asJSON)
	b.handled(1)
}

func bodyLimit(t *testing.T, mount Mount) {
	var rest bytes.Buffer
	b := start(t, mount, Setup{Key: "order:{body:id}", MaxBody: 1000, Handler: echoBody, Outer: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := &counted{r: r.Body}
			r.Body = io.NopCloser(body)
			next.ServeHTTP(w, r)
			if read := body.n.Load(); r.ContentLength > 1000 && read > 0 {
				t.Errorf("%d bytes were read of a body that says it is too large", read)
			}
			rest.Reset()
			_, _ = io.Copy(&rest, r.Body)
		})
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
}

// The largest limit is none.
func unlimitedBody(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{Key: "order:{body:id}", MaxBody: math.MaxInt64, Handler: echoBody})
	b.passed(b.send(b.request(strings.NewReader(document(100)))), document(100))
}

func brokenBody(t *testing.T, mount Mount) {
	b := start(t, mount, Setup{Key: "order:{body:id}", Outer: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 50)
			next.ServeHTTP(w, r)
		})
	}})
	b.expect(b.do("POST /plain", document(100), asJSON), rowTooLarge)
	b.expect(b.do("POST /plain", `{"id":42}`+strings.Repeat(" ", 100), asJSON), rowTooLarge)
	b.handled(0)
	b = start(t, mount, Setup{Key: "order:{body:id}", Outer: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = io.NopCloser(io.MultiReader(io.LimitReader(r.Body, 50), iotest.ErrReader(io.ErrUnexpectedEOF)))
			next.ServeHTTP(w, r)
		})
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

// A client that expects "100 Continue" gets it only if somebody reads the body: the handler,
// or the middleware if the key is in it.
func refusedUpload(t *testing.T, mount Mount) {
	for name, test := range map[string]struct {
		key  string
		held bool
		sent bool
	}{
		"Held":            {"order:{id|int}", true, false},
		"Passes":          {"order:{id|int}", false, true},
		"HeldByTheBody":   {"order:{body:id}", true, true},
		"PassesByTheBody": {"order:{body:id}", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, mount, Setup{Key: test.key, Handler: echoBody})
			if test.held {
				b.hold("order:42")
			}
			b.srv.Client().Transport.(*http.Transport).ExpectContinueTimeout = time.Hour
			body := &counted{r: strings.NewReader(document(100))}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/orders/42", body)
			if err != nil {
				t.Fatal(err)
			}
			r.ContentLength = 100
			r.Header.Set("Expect", "100-continue")
			r.Header.Set("Content-Type", "application/json")
			switch got := b.send(r); {
			case test.held:
				b.expect(got, rowHeld)
			default:
				b.passed(got, document(100))
			}
			if sent := body.n.Load() > 0; sent != test.sent {
				t.Errorf("the body was sent: %t", sent)
			}
		})
	}
}

// counted counts what was read.
type counted struct {
	r io.Reader
	n atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
