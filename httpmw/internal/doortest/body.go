package doortest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
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

func testBody(t *testing.T, door Door) {
	for name, test := range map[string]func(*testing.T, Door){
		"TheHandlerReadsAllOfIt":            wholeBody,
		"TheHandlerParsesTheForm":           wholeForm,
		"LengthAndTrailersStay":             trailers,
		"TheLimitIsExact":                   bodyLimit,
		"ALargeBodyIsReadableAfterARefusal": refusedBody,
		"WhatSaysItIsTooLargeIsNotRead":     tooLargeBody,
		"OtherKeysLeaveItAlone":             otherKeys,
		"ABodyThatBreaksOffIs400":           brokenBody,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, door)
		})
	}
}

func wholeBody(t *testing.T, door Door) {
	b := start(t, door, Setup{Key: "order:{body:id}", Handler: echoBody})
	for _, n := range []int{100, 4 << 10, 1 << 20} {
		if got := b.do("POST /plain", document(n), asJSON); got.status != http.StatusOK || got.body != document(n) {
			t.Errorf("%d bytes: answered %d with %d bytes", n, got.status, len(got.body))
		}
	}
}

func wholeForm(t *testing.T, door Door) {
	b := start(t, door, Setup{Key: "{form:sku}", Handler: func(w http.ResponseWriter, r *http.Request) {
		if r.Form != nil || r.MultipartForm != nil {
			t.Error("the form was parsed already")
		}
		_, _ = w.Write([]byte(r.PostFormValue("sku")))
	}})
	b.passed(b.do("POST /plain", "sku=7&x=1", asForm), "7")
	b.passed(b.do("POST /plain", part("7"), asPart), "7")
}

func trailers(t *testing.T, door Door) {
	b := start(t, door, Setup{Key: "order:{body:id}", Handler: func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, string(body)+" "+r.Trailer.Get("X-Sum"))
		if r.ContentLength != -1 {
			t.Errorf("ContentLength %d of a chunked body", r.ContentLength)
		}
	}})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/plain", io.NopCloser(strings.NewReader(`{"id":42}`)))
	if err != nil {
		t.Fatal(err)
	}
	r.Trailer = http.Header{"X-Sum": {"abc"}}
	b.passed(b.send(r), `{"id":42} abc`)

	b = start(t, door, Setup{Key: "order:{body:id}", Handler: func(_ http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 100 {
			t.Errorf("ContentLength %d, want 100", r.ContentLength)
		}
	}})
	b.do("POST /plain", document(100), asJSON)
	b.handled(1)
}

func bodyLimit(t *testing.T, door Door) {
	b := start(t, door, Setup{Key: "order:{body:id}", MaxBody: 1000, Handler: echoBody})
	b.passed(b.do("POST /plain", document(1000), asJSON), document(1000))
	b.expect(b.do("POST /plain", document(1001), asJSON), rowBadKey)
	b.handled(1)
	chunked, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/plain", io.MultiReader(strings.NewReader(document(1001))))
	if err != nil {
		t.Fatal(err)
	}
	b.expect(b.send(chunked), rowBadKey)
	b.handled(1)
	if !b.free("order:42") {
		t.Error("locked")
	}

	b = start(t, door, Setup{Key: "{form:sku}", Handler: echoBody})
	b.expect(b.do("POST /plain", "sku=7&x="+strings.Repeat("x", 1<<20), asForm), rowBadKey)
	b.handled(0)
}

func refusedBody(t *testing.T, door Door) {
	var rest bytes.Buffer
	b := start(t, door, Setup{Key: "order:{body:id}", MaxBody: 1000, Outer: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			rest.Reset()
			_, _ = io.Copy(&rest, r.Body)
		})
	}})
	sent := document(3000)
	for name, body := range map[string]io.Reader{
		"with its length": strings.NewReader(sent),
		"in chunks":       io.MultiReader(strings.NewReader(sent)),
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		b.expect(b.send(r), rowBadKey)
		if rest.String() != sent {
			t.Errorf("%s: %d bytes of %d are left", name, rest.Len(), len(sent))
		}
	}
	b.handled(0)
}

func otherKeys(t *testing.T, door Door) {
	b := start(t, door, Setup{MaxBody: 10, Handler: echoBody})
	b.passed(b.do("POST /orders/42", document(3000)), document(3000))
}

func brokenBody(t *testing.T, door Door) {
	b := start(t, door, Setup{Key: "order:{body:id}", Outer: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 50)
			next.ServeHTTP(w, r)
		})
	}})
	b.expect(b.do("POST /plain", document(100), asJSON), rowBadKey)
	b.expect(b.do("POST /plain", `{"id":42}`+strings.Repeat(" ", 100), asJSON), rowBadKey)
	b.handled(0)
}

// unread is a body that nobody may read.
type unread struct {
	io.ReadCloser
	t *testing.T
}

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func tooLargeBody(t *testing.T, door Door) {
	b := start(t, door, Setup{Key: "order:{body:id}", MaxBody: 1000, Outer: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = unread{r.Body, t}
			next.ServeHTTP(w, r)
		})
	}})
	b.expect(b.do("POST /plain", document(1001), asJSON), rowBadKey)
}
