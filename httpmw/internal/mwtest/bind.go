package mwtest

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// Pay is a request that is bound. What a client may say beside it, core/internal/harness/httpnames looks at.
type Pay struct {
	OrderID int64  `param:"id" uri:"id" query:"id" form:"id" json:"id" xml:"id"`
	Account string `query:"account" form:"account" json:"account" xml:"account"`
}

func testBind(t *testing.T, mount Mount) {
	boundAnswers(t, mount)
	locks := locktest.Memory(t) // what is beside these is checked for Lock, in the same place
	for what, s := range map[string]Setup{
		"NoSuchField": {Locker: locks, Key: "order:{ID}"},
		"ASource":     {Locker: locks, Key: "order:{query:id|int}"},
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

func boundAnswers(t *testing.T, mount Mount) {
	bound := func(w http.ResponseWriter, r *http.Request, req *Pay) {
		leaseName(w, r)
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
	free := b.hold("account:a")
	b.expect(b.do("POST /pay", `{"id":5,"account":"a"}`, asJSON), rowHeld)
	free()
	b.handled(1)

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
