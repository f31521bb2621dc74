package mwtest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

const (
	asForm = "Content-Type: application/x-www-form-urlencoded"
	asJSON = "Content-Type: application/json"
	asPart = "Content-Type: multipart/form-data; boundary=B"
)

// part is a multipart form with a file.
const part = "--B\r\nContent-Disposition: form-data; name=\"sku\"; filename=\"f\"\r\n\r\nfile\r\n--B--\r\n"

// What a client may write in how many ways, core/internal/harness/httpnames compares with what handlers read.
func testNames(t *testing.T, mount Mount) {
	for _, test := range []struct {
		key, line, body string
		headers         []string
		want            string // the name, or
		reason          string // why there is none
	}{
		{key: "order:{id|int}", line: "POST /orders/042", want: "order:42"},
		{key: "order:{query:id|int}", line: "POST /plain?id=007", want: "order:7"},
		{key: "order:{header:X-Order|uuid}", line: "POST /plain", headers: []string{"X-Order: 6F1C2A349A0B4C1D8E5F0123456789AB"},
			want: "order:6f1c2a34-9a0b-4c1d-8e5f-0123456789ab"},
		{key: "job:nightly", line: "POST /plain", want: "job:nightly"},
		{key: "{query:sku|text}", line: "POST /plain?sku=7&sku=%37", want: "7"},
		{key: "{header:X-Tenant|text}", line: "POST /plain", headers: []string{"X-Tenant: a, b"}, want: "a,%20b"},
		{key: "{header:x-tenant|text}:{id|text}", line: "POST /orders/42", headers: []string{"X-TENANT: acme"}, want: "acme:42"},
		{key: "{header:X-Tenant|text}", line: "POST /plain", headers: []string{"X-Tenant: a", "X-Tenant: a"}, want: "a"},
		{key: "{header:Host|text}", line: "POST /plain", headers: []string{"Host: shop.test"}, want: "shop.test"},
		{key: "{body:id}", line: "PUT /plain", body: `{"id":"42"}`, headers: []string{"Content-Type: application/json; charset=utf-8"}, want: "42"},
		{key: "{body:id}:{body:sku}", line: "POST /plain", body: `{"id":42,"sku":"a:b"}`, headers: []string{asJSON}, want: "42:a%3Ab"},
		{key: "{id|int}", line: "POST /orders/4e1", reason: "invalid"},
		{key: "{query:sku|text}", line: "POST /plain", reason: "missing"},
		{key: "{query:sku|text}", line: "POST /plain?sku=", reason: "missing"},
		{key: "{query:sku|text}", line: "POST /plain?SKU=7", reason: "missing"},
		{key: "{query:sku|text}", line: "POST /plain?sku=7&sku=8", reason: "ambiguous"},
		{key: "{query:sku|text}", line: "POST /plain?sku=%zz", reason: "missing"},
		{key: "{header:X-Tenant|text}", line: "POST /plain", reason: "missing"},
		{key: "{header:X-Tenant|text}", line: "POST /plain", headers: []string{"X-Tenant: a", "X-Tenant: "}, reason: "ambiguous"},
		{key: "{body:id}", line: "POST /plain", headers: []string{asJSON}, reason: "missing"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42,"ID":43}`, headers: []string{asJSON}, reason: "ambiguous"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42`, headers: []string{asJSON}, reason: "invalid"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42,"x":"&id=43&"}`, headers: []string{asForm}, reason: "content-type"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42}`, headers: []string{"Content-Type: application/json; x"}, reason: "content-type"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42}`, reason: "content-type"},                                                      // of no type
		{key: "{body:id}", line: "POST /plain", body: `{"id":42}`, headers: []string{"Content-Type: Application/JSON"}, reason: "content-type"}, // gin reads a form
		{key: "{body:id}", line: "POST /plain", body: `{"id":42}`, headers: []string{asJSON, asForm}, reason: "content-type"},
	} {
		t.Run(test.key+" "+test.line+" "+test.body, func(t *testing.T) {
			t.Parallel()
			b := start(t, mount, Setup{Key: test.key})
			b.store.Down.Store(test.reason != "") // nothing is asked of the backend
			got := b.do(test.line, test.body, test.headers...)
			if test.reason == "" {
				b.passed(got, test.want)
				return
			}
			b.expect(got, rowBadKey)
			source, _, _ := strings.Cut(strings.Trim(test.key, "{}"), "|")
			b.blames(got, source, test.reason)
			b.handled(0)
		})
	}
}

// Pay is a request that is bound. What a client may say beside it, core/internal/harness/httpnames looks at.
type Pay struct {
	OrderID int64  `param:"id" uri:"id" query:"id" form:"id" json:"id" xml:"id"`
	Account string `query:"account" form:"account" json:"account" xml:"account"`
}

func testBind(t *testing.T, mount Mount) {
	boundAnswers(t, mount)
	locks := locktest.Memory(t) // what is beside these is checked for Lock, in the same place
	bound := func(http.ResponseWriter, *http.Request, *Pay) {}
	for what, s := range map[string]Setup{
		"NoSuchField": {Locker: locks, Key: "order:{ID}", Bound: bound},
		"ASource":     {Locker: locks, Key: "order:{query:id|int}", Bound: bound},
		"AKeyFunc":    {Locker: locks, Key: "a", KeyFunc: named("x", nil), Bound: bound},
		"NoHandler":   {Locker: locks, Key: "order:{OrderID}"},
	} {
		if _, err := mount(s); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", what, err)
		}
	}
}

func boundAnswers(t *testing.T, mount Mount) {
	bound := func(w http.ResponseWriter, r *http.Request, req *Pay) {
		LeaseName(w, r)
		_, _ = fmt.Fprintf(w, " %d %s", req.OrderID, req.Account)
	}
	b := start(t, mount, Setup{Key: "order:{OrderID} account:{Account}", Bound: bound})
	b.passed(b.do("POST /pay", `{"id":5,"account":"a"}`, asJSON), "order:5 5 a")
	for body, source := range map[string]string{`{"id":5}`: "Account", `{"account":"a"}`: "OrderID", `{"id":0,"account":"a"}`: "OrderID"} {
		got := b.do("POST /pay", body, asJSON)
		b.expect(got, rowBadKey)
		b.blames(got, source, "missing")
	}
	if got := b.do("POST /pay", `{"id":`, asJSON); got.status != http.StatusBadRequest {
		t.Errorf("what cannot be bound: %d %s", got.status, got.body)
	}
	free := locktest.Hold(t, b.other, "account:a")
	b.expect(b.do("POST /pay", `{"id":5,"account":"a"}`, asJSON), rowHeld)
	free()
	b = start(t, mount, Setup{Key: "order:{OrderID}", Options: short, Bound: func(_ http.ResponseWriter, r *http.Request, _ *Pay) { <-r.Context().Done() }})
	b.expect(b.do("POST /pay", `{"id":5}`, asJSON), rowLost)
	b = start(t, mount, Setup{Key: "order:{OrderID}", Skipper: func(*http.Request) bool { return true }, Bound: bound})
	b.passed(b.do("POST /pay", `{"id":5}`, asJSON), "none 5 ")
}

// Answer is what a handler's error becomes where it returns none: s.Fails, by httpmw's own table.
func (s Setup) Answer(w http.ResponseWriter, r *http.Request) {
	s.Handler(w, r)
	if p := httpmw.ProblemFor(s.Fails); p != nil {
		p.ServeHTTP(w, r)
	}
}
