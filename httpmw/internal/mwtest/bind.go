package mwtest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// Pay is a request that is bound.
type Pay struct {
	OrderID int64  `param:"id" uri:"id" query:"id" form:"id" json:"id" xml:"id"`
	Account string `query:"account" form:"account" json:"account" xml:"account"`
}

func testBind(t *testing.T, mount Mount) {
	run(t, mount, map[string]func(*testing.T, Mount){"WhatIsBoundIsLocked": boundIsLocked, "Answers": boundAnswers})
	locks := locktest.Memory(t)
	for what, s := range map[string]Setup{
		"NoLocker":    {Key: "order:{OrderID}"},
		"NoKey":       {Locker: locks},
		"NoSuchField": {Locker: locks, Key: "order:{ID}"},
		"ASource":     {Locker: locks, Key: "order:{query:id|int}"},
		"AColon":      {Locker: locks, Key: "order/:OrderID"},
		"AnOption":    {Locker: locks, Key: "order:{OrderID}", Options: []core.Option{core.WithTTL(1)}},
		"AKeyFunc":    {Locker: locks, Key: "a", KeyFunc: named("x", nil)},
		"NoHandler":   {Locker: locks, Key: "order:{OrderID}", Bound: nil},
	} {
		if what != "NoHandler" {
			s.Bound = func(http.ResponseWriter, *http.Request, *Pay) {}
		}
		if _, err := mount(s); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", what, err)
		}
	}
}

// A client may say several things at once. Whatever the handler gets of them, that is locked, or nothing runs.
func boundIsLocked(t *testing.T, mount Mount) {
	orders := key.MustParse("order:{id}:{account}")
	var ran int
	var request string
	h, err := mount(Setup{Locker: locktest.Memory(t), Key: "order:{OrderID}:{Account}", Bound: func(_ http.ResponseWriter, r *http.Request, req *Pay) {
		ran++
		x, _ := core.FromContext(r.Context())
		if want, err := orders.Name(strconv.FormatInt(req.OrderID, 10), req.Account); err != nil || x.Name() != want {
			t.Errorf("%s: the handler got %+v under %s", request, req, x.Name())
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"GET /pay?id=1&account=a", "POST /pay", "POST /pay?id=1&account=a", "POST /pay?id=1&id=2&account=a", "PUT /orders/3?account=b",
		"POST /orders/3?id=4", "DELETE /orders/3?account=c", "POST /orders/x?account=c",
	} {
		for _, kind := range []string{
			"", "application/json", "Application/JSON", "application/json; charset=utf-8", "application/merge-patch+json", "text/json",
			"application/xml", "application/x-www-form-urlencoded", "multipart/form-data; boundary=B", "text/plain",
		} {
			for _, body := range []string{
				"", `{"id":5,"account":"d"}`, `{"id":5,"ID":6,"account":"d","Account":"e"}`, `{"id":5,"id":6}`, `{"id":"5"}`,
				"id=7&account=f", "id=7&id=8&account=f", "<Pay><id>9</id><account>g</account></Pay>",
				"--B\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n10\r\n--B--\r\n",
			} {
				request = line + " " + kind + " " + body
				method, target, _ := strings.Cut(line, " ")
				r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
				if kind != "" {
					r.Header.Set("Content-Type", kind)
				}
				before, w := ran, httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if refused := w.Code >= http.StatusBadRequest; refused == (ran > before) || w.Code >= http.StatusInternalServerError {
					t.Errorf("%s: answered %d %s", request, w.Code, w.Body)
				}
			}
		}
	}
	if ran < 4 {
		t.Errorf("only %d requests reached the handler", ran)
	}
}

func boundAnswers(t *testing.T, mount Mount) {
	var b *bench
	bound := func(w http.ResponseWriter, r *http.Request, _ *Pay) { leaseName(w, r) }
	b = start(t, mount, Setup{Key: "order:{OrderID} account:{Account}", Bound: bound})
	b.passed(b.do("POST /pay", `{"id":5,"account":"a"}`, asJSON), "order:5")
	for body, source := range map[string]string{`{"id":5}`: "Account", `{"account":"a"}`: "OrderID", `{"id":0,"account":"a"}`: "OrderID"} {
		got := b.do("POST /pay", body, asJSON)
		b.expect(got, rowBadKey)
		b.blames(got, source, "missing")
	}
	for _, kind := range []string{"", "text/json", "application/xml"} { // for a body that is JSON
		if got := b.do("POST /pay", `{"id":5,"account":"a"}`, "Content-Type: "+kind); got.status < 400 || got.status >= 500 {
			t.Errorf("%q: answered %d %s", kind, got.status, got.body)
		}
	}
	if got := b.do("POST /pay", `{"id":`, asJSON); got.status != http.StatusBadRequest {
		t.Errorf("what cannot be bound: %d %s", got.status, got.body)
	}
	free := b.hold("account:a")
	b.expect(b.do("POST /pay", `{"id":5,"account":"a"}`, asJSON), rowHeld)
	free()
	b.handled(1)

	b = start(t, mount, Setup{Key: "order:{OrderID}", Options: short, Bound: func(_ http.ResponseWriter, r *http.Request, _ *Pay) { <-r.Context().Done() }})
	b.expect(b.do("POST /pay", `{"id":5}`, asJSON), rowLost)
	b = start(t, mount, Setup{Key: "order:{OrderID}", Skipper: func(*http.Request) bool { return true }, Bound: bound})
	b.passed(b.do("POST /pay", `{"id":5}`, asJSON), "none")
}

// Answer is what a handler's error becomes where it returns none: s.Fails, by httpmw's own table.
func (s Setup) Answer(w http.ResponseWriter, r *http.Request) {
	s.Handler(w, r)
	if p := httpmw.ProblemFor(s.Fails); p != nil {
		p.ServeHTTP(w, r)
	}
}
