package echotest

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
	"github.com/holdfast-go/holdfast/httpmw/internal/doortest"
)

// Pay is a request that is bound.
type Pay struct {
	OrderID int64  `param:"id" query:"id" form:"id" json:"id" xml:"id"`
	Account string `query:"account" form:"account" json:"account" xml:"account"`
}

// bound serves /orders/:id and /pay with a handler that Bind has made.
func (v Version[C, H, M]) bound(h H) http.Handler {
	app := App[C, H, M]{Handler: h}
	for _, method := range []string{"GET ", "POST ", "PUT ", "DELETE "} {
		app.Routes = append(app.Routes, method+"/orders/:id", method+"/pay")
	}
	return v.Serve(app)
}

func send(t *testing.T, h http.Handler, line, contentType, body string) *httptest.ResponseRecorder {
	t.Helper()
	method, target, _ := strings.Cut(line, " ")
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A client may say several things at once. Whatever the handler gets of them, that is locked, or nothing runs.
func (v Version[C, H, M]) boundIsLocked(t *testing.T) {
	var got *Pay
	orders := key.MustParse("order:{id}:{account}")
	h := v.bound(v.Bind(doortest.MemoryLocker(t), "order:{OrderID}:{Account}", func(c C, req *Pay) error {
		got = req
		return leaseName(c)
	}))
	ran := 0
	for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
		for _, target := range []string{"/pay", "/pay?id=1&account=a", "/pay?id=1&id=2&account=a", "/orders/3?account=b", "/orders/3?id=4", "/orders/x?account=c"} {
			for _, kind := range []string{
				"", "application/json", "Application/JSON", "application/json; charset=utf-8", "application/merge-patch+json", "text/json",
				"application/xml", "application/x-www-form-urlencoded", "multipart/form-data; boundary=B", "text/plain",
			} {
				for _, body := range []string{
					"", `{"id":5,"account":"d"}`, `{"id":5,"ID":6,"account":"d","Account":"e"}`, `{"id":5,"id":6}`, `{"id":"5"}`,
					"id=7&account=f", "id=7&id=8&account=f", "<Pay><id>9</id><account>g</account></Pay>",
					"--B\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n10\r\n--B--\r\n",
				} {
					got = nil
					w := send(t, h, method+" "+target, kind, body)
					if w.Code == http.StatusOK && got == nil || w.Code != http.StatusOK && got != nil {
						t.Errorf("%s %s, %q, %q: %d, and the handler got %+v", method, target, kind, body, w.Code, got)
					}
					if got == nil {
						continue
					}
					ran++
					if want, err := orders.Name(strconv.FormatInt(got.OrderID, 10), got.Account); err != nil || w.Body.String() != want {
						t.Errorf("%s %s, %q, %q: the handler got %+v under %s", method, target, kind, body, got, w.Body)
					}
				}
			}
		}
	}
	if ran < 100 {
		t.Errorf("only %d requests reached the handler", ran)
	}
}

func (v Version[C, H, M]) boundRefusals(t *testing.T) {
	locks := doortest.MemoryLocker(t)
	h := v.bound(v.Bind(locks, "order:{OrderID} account:{Account}", func(c C, _ *Pay) error {
		t.Error("it ran")
		return c.NoContent(http.StatusNoContent)
	}))
	for body, source := range map[string]string{`{"id":5}`: "Account", `{"account":"a"}`: "OrderID", `{"id":0,"account":"a"}`: "OrderID"} {
		if w := send(t, h, "POST /pay", "application/json", body); w.Code != http.StatusBadRequest ||
			!strings.Contains(w.Body.String(), httpmw.TypeInvalidKey) || !strings.Contains(w.Body.String(), `"source":"`+source+`","reason":"missing"`) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	if w := send(t, h, "POST /pay", "application/json", `{"id":`); w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), httpmw.TypeInvalidKey) {
		t.Errorf("what cannot be bound: %d %s, want Echo's own answer", w.Code, w.Body)
	}
	x, err := locks.TryAcquire(t.Context(), "account:a")
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release(t.Context()) //nolint:errcheck // a test's end
	if w := send(t, h, "POST /pay", "application/json", `{"id":5,"account":"a"}`); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), httpmw.TypeHeld) {
		t.Errorf("held: %d %s", w.Code, w.Body)
	}
}

func (v Version[C, H, M]) boundLoss(t *testing.T) {
	h := v.bound(v.Bind(doortest.MemoryLocker(t), "order:{OrderID}", func(c C, _ *Pay) error { return wait[C](nil)(c) }, short))
	if w := send(t, h, "POST /orders/5", "", ""); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), httpmw.TypeLost) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func (v Version[C, H, M]) boundSkipped(t *testing.T) {
	h, err := v.NewBind(Config[C]{Locker: doortest.MemoryLocker(t), Key: "order:{OrderID}", Skipper: func(C) bool { return true }},
		func(c C, req *Pay) error { return c.String(http.StatusOK, strconv.FormatInt(req.OrderID, 10)) })
	if err != nil {
		t.Fatal(err)
	}
	if w := send(t, v.bound(h), "POST /orders/5", "", ""); w.Code != http.StatusOK || w.Body.String() != "5" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func (v Version[C, H, M]) boundConstruction(t *testing.T) {
	locks := doortest.MemoryLocker(t)
	handler := func(C, *Pay) error { return nil }
	for what, try := range map[string]func() error{
		"NoLocker":    func() error { _, err := v.NewBind(Config[C]{Key: "order:{OrderID}"}, handler); return err },
		"NoKey":       func() error { _, err := v.NewBind(Config[C]{Locker: locks}, handler); return err },
		"NoHandler":   func() error { _, err := v.NewBind(Config[C]{Locker: locks, Key: "order:{OrderID}"}, nil); return err },
		"NoSuchField": func() error { _, err := v.NewBind(Config[C]{Locker: locks, Key: "order:{ID}"}, handler); return err },
		"ASource": func() error {
			_, err := v.NewBind(Config[C]{Locker: locks, Key: "order:{query:id|int}"}, handler)
			return err
		},
		"AColon": func() error {
			_, err := v.NewBind(Config[C]{Locker: locks, Key: "order/:OrderID"}, handler)
			return err
		},
		"AnOption": func() error {
			_, err := v.NewBind(Config[C]{Locker: locks, Key: "order:{OrderID}", Options: []core.Option{core.WithTTL(1)}}, handler)
			return err
		},
		"AKeyFunc": func() error {
			_, err := v.NewBind(Config[C]{Locker: locks, Key: "a", KeyFunc: func(C) (string, error) { return "x", nil }}, handler)
			return err
		},
	} {
		if err := try(); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", what, err)
		}
	}
	defer func() {
		if s, _ := recover().(string); !strings.HasPrefix(s, v.Package+": ") {
			t.Errorf("panicked with %q", s)
		}
	}()
	v.Bind(locks, "order:{ID}", handler)
}
