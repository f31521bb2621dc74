// Package httpnames compares the locks that the middleware of all HTTP frameworks takes with what their handlers read.
package httpnames_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

var (
	flagRequests = flag.Int("http.requests", 2000, "how many requests each framework gets")
	flagSeed     = flag.Uint64("http.seed", 1, "of the requests")
)

// all are the frameworks, and what they have made of the values that handlers got.
type all struct {
	serve map[string]framework
	locks map[string]string // framework, route and value as the framework gives it → name
	ran   map[string]int
}

func newAll(tb testing.TB) *all {
	tb.Helper()
	locks := locktest.Memory(tb)
	return &all{
		serve: map[string]framework{
			"net/http": onNetHTTP(locks), "Echo v4": onEcho4(locks), "Echo v5": onEcho5(locks), "gin": onGin(locks), "Fiber": onFiber(locks),
		},
		locks: make(map[string]string), ran: make(map[string]int),
	}
}

// templates are the keys of the routes, by the first part of their paths.
var templates = map[string]string{
	"int": "order:{id|int}", "text": "order:{id|text}", "query": "order:{query:id|text}", "header": "order:{header:X-Order|text}", "body": "order:{body:id}",
	"bound": "order:{OrderID}:{Account}",
}

// What the handler reads is made into the name in another way than the middleware does it: by the key's values alone.
var keys = map[string]*key.Key{
	"int": key.MustParse("order:{v|int}"), "text": key.MustParse("order:{v}"), "query": key.MustParse("order:{v}"),
	"header": key.MustParse("order:{v}"), "body": key.MustParse("order:{v}"), "bound": key.MustParse("order:{v}:{w}"),
}

// request is one that a client may send.
type request struct{ method, target, kind, override, order, body string }

func (r request) bytes() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: shop.test\r\nContent-Length: %d\r\n", r.method, r.target, len(r.body))
	for _, h := range [][2]string{{"Content-Type", r.kind}, {"X-HTTP-Method-Override", r.override}, {"X-Order", r.order}} {
		for value := range strings.SplitSeq(h[1], "\n") { // each line is a header of its own
			if value != "" {
				fmt.Fprintf(&b, "%s: %s\r\n", h[0], value)
			}
		}
	}
	return []byte(b.String() + "\r\n" + r.body)
}

// check sends a request to every framework. If a handler runs, it does so under the lock of what it reads; and no two requests in
// which a framework gives its handler the same path parameter have different locks, however the handler unescapes it.
func (a *all) check(tb testing.TB, r request) {
	tb.Helper()
	raw := r.bytes()
	route, _, _ := strings.Cut(strings.TrimPrefix(r.target, "/"), "/")
	route, _, _ = strings.Cut(route, "?")
	for name, serve := range a.serve {
		got := serve(raw)
		broken := got.status >= http.StatusInternalServerError && got.status != http.StatusNotImplemented // fiber's answer to no method
		if refused := got.status >= http.StatusMultipleChoices; refused == got.ran || broken {
			tb.Errorf("%s, %+v: answered %d, and the handler ran: %t", name, r, got.status, got.ran)
		}
		if !got.ran {
			continue
		}
		a.ran[name+" "+route]++
		k := keys[route]
		if k == nil { // a router has found another way to write it
			for _, other := range keys {
				if want, err := other.Name(got.values...); err == nil && want == got.lock {
					k = other
				}
			}
		}
		if k == nil {
			tb.Errorf("%s, %+v: the handler reads %q under %q", name, r, got.values, got.lock)
			continue
		}
		if want, err := k.Name(got.values...); err != nil || got.lock != want {
			tb.Errorf("%s, %+v: the handler reads %q (%v) under %q", name, r, got.values, err, got.lock)
		}
		if got.raw == "" {
			continue
		}
		at := name + " " + route + " " + got.raw
		if before, ok := a.locks[at]; ok && before != got.lock {
			tb.Errorf("%s, %+v: the handler gets %q under %q, and under %q before", name, r, got.raw, got.lock, before)
		}
		a.locks[at] = got.lock
	}
}

// Pieces of requests. Every combination of them can come.
var (
	methods = []string{"GET", "POST", "PUT", "DELETE", "PATCH"}
	values  = []string{
		"42", "042", "+42", "-7", "0", "%34%32", "%2B42", "4%2", "a", "A", "%41", "%2541", "%252541", "a%2Fb", "a%20b", "a+b", "%C3%BC", "ü", "%FF", "%00", "1:2", "1%3A2", "%7Bx%7D",
		"{x}", "", "*", "..", "%2e%2e", "7;id=8", "7,8", "100%25", "%", "%zz", "6f1c2a349a0b4c1d8e5f0123456789ab", "９",
	}
	queries = []string{"id=%s", "id=%s&id=%s", "ID=%s", "id=%s&account=b", "account=c", "id[]=%s", "x=1&id=%s", "id=%s;x=1", "id", "%%69d=%s", "id=%s#id=%s"}
	types   = []string{
		"application/json", "application/json; charset=utf-8", "application/json;charset=utf-8", "Application/JSON", "application/merge-patch+json", "text/json", "application/xml",
		"application/x-www-form-urlencoded", "multipart/form-data; boundary=B", "text/plain", "", "application/json\ntext/plain", "text/plain\napplication/json", "application/json, text/plain",
		"application/jsonp", "application/json x", "application/x-yaml",
	}
	bodies = []string{
		`{"id":42,"account":"a"}`, `{"id":"042","account":"a"}`, `{"id":42,"ID":43,"account":"a"}`, `{"ID":43,"account":"a"}`, `{"id":42,"id":43}`, `{"id":4.2}`, `{"id":1e2,"account":"a"}`,
		`{"id":42.0}`, `{"id":null,"account":"a"}`, `{"\u0069d":5,"account":"a"}`, `{"id":42}{"id":43}`, `{"id":"\ud800","account":"a"}`, "{\"id\":\"\xff\"}", `{"id":-0,"account":"a"}`, `{"id":123456789012345678901234567890}`,
		`{"ıd":1,"id":2}`, `{"id":["42"]}`, `[{"id":42}]`, `"id"`, "", "id=42&account=a", "id=42&id=43", "<pay><id>9</id><account>g</account></pay>", "id: 5\naccount: a\n",
		"--B\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n10\r\n--B--\r\n", "\ufeff{\"id\":42}", " {\"id\":42 } ",
	}
	orders = []string{"", "42", "42\n42", "42\n43", " 42 ", "4 2", "\xff", "a,b", "\t42"}
)

func some(rnd *rand.Rand, of []string) string { return of[rnd.IntN(len(of))] }

func random(rnd *rand.Rand) request {
	value := func() string {
		v := some(rnd, values)
		if rnd.IntN(8) == 0 {
			v += some(rnd, values)
		}
		return v
	}
	target := some(rnd, []string{"/int/" + value(), "/text/" + value(), "/text/" + value(), "/query", "/query", "/header", "/body", "/body", "/bound", "/bound/" + value()})
	if rnd.IntN(3) == 0 || target == "/query" {
		q := some(rnd, queries)
		for strings.Contains(q, "%s") {
			q = strings.Replace(q, "%s", value(), 1)
		}
		target += "?" + strings.ReplaceAll(q, "%%", "%")
	}
	r := request{some(rnd, methods), target, some(rnd, types), "", some(rnd, orders), some(rnd, bodies)}
	if strings.HasPrefix(target, "/body") && rnd.IntN(2) == 0 {
		r.kind = types[0]
	}
	if rnd.IntN(4) == 0 {
		r.override = some(rnd, methods)
	}
	if n := len(r.body); n > 0 && rnd.IntN(10) == 0 { // a byte of it is another one
		at := rnd.IntN(n)
		r.body = r.body[:at] + string([]byte{byte(rnd.IntN(256))}) + r.body[at+1:]
	}
	return r
}

// everyByte leaves nothing for a client or a router to tidy up.
func everyByte(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

func TestTheLockIsOfWhatTheHandlerReads(t *testing.T) {
	t.Parallel()
	a, rnd := newAll(t), rand.New(rand.NewPCG(*flagSeed, 0))
	for _, value := range hostile.Values() {
		if len(value) <= 1<<10 { // fasthttp reads no larger line
			text, _ := json.Marshal(value) // of a string: it never fails
			for _, target := range []string{"/text/" + everyByte(value), "/query?id=" + everyByte(value), "/body"} {
				a.check(t, request{method: "POST", target: target, kind: types[0], body: `{"id":` + string(text) + `}`})
			}
		}
	}
	for i := 0; i < *flagRequests && !t.Failed(); i++ {
		a.check(t, random(rnd))
	}
	for name := range a.serve {
		for route := range keys {
			if a.ran[name+" "+route] < *flagRequests/1000 {
				t.Errorf("%s: only %d requests of %s reached the handler", name, a.ran[name+" "+route], route)
			}
		}
	}
	t.Logf("%d requests: %v", *flagRequests, a.ran)
}

func FuzzTheLockIsOfWhatTheHandlerReads(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		r := random(rnd)
		f.Add(r.method, r.target, r.kind, r.override, r.order, r.body)
	}
	a := newAll(f)
	f.Fuzz(func(t *testing.T, method, target, kind, override, order, body string) {
		a.check(t, request{method, target, kind, override, order, body})
	})
}
