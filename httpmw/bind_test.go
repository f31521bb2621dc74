package httpmw_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

type payment struct {
	OrderID int64  `json:"order_id"`
	Note    string `json:"note"`
}

// What the table says of all that is bound is not said again.
func TestJSONIsDecodedStrictly(t *testing.T) {
	t.Parallel()
	h := httpmw.Bind(locktest.Memory(t), "order:{OrderID}", httpmw.JSON[payment], func(w http.ResponseWriter, r *http.Request, req *payment) {
		mwtest.LeaseName(w, r)
		_, _ = fmt.Fprint(w, " ", req.OrderID)
	})
	const asJSON, torn = "application/json; charset=utf-8", `{"order_id":7} and more`
	for _, row := range []struct {
		contentType, body string
		status            int
		says              string
	}{
		{asJSON, `{"order_id":7}`, 200, "order:7 7"},
		{asJSON, `{"order_id":7,"ORDER_ID":8}`, 200, "order:8 8"},
		{asJSON, `{"order_id":"7"}`, 400, httpmw.TypeInvalidKey},
		{asJSON, `{"order_id":7,"note":8}`, 400, httpmw.TypeInvalidKey},
		{asJSON, `{"order_id":7}{}`, 400, httpmw.TypeInvalidKey},
		{asJSON, ``, 400, httpmw.TypeInvalidKey},
		{asJSON, `{"order_id":7,"x":"` + strings.Repeat("x", 1<<20) + `"}`, 413, httpmw.TypeTooLarge},
		{asJSON, torn, 413, httpmw.TypeTooLarge},
		{"", `{"order_id":7}`, 400, httpmw.TypeInvalidKey},
		{"Application/JSON", `{"order_id":7}`, 400, httpmw.TypeInvalidKey},
		{"application/x-www-form-urlencoded", `order_id=7`, 400, httpmw.TypeInvalidKey},
	} {
		var body io.Reader = strings.NewReader(row.body)
		if row.body == torn {
			body = io.MultiReader(body, iotest.ErrReader(&http.MaxBytesError{Limit: 30}))
		}
		r := httptest.NewRequest(http.MethodPost, "/pay?order_id=9", body)
		r.Header.Set("Content-Type", row.contentType)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != row.status || !strings.Contains(w.Body.String(), row.says) {
			t.Errorf("%q, %.60s: %d %s", row.contentType, row.body, w.Code, w.Body)
		}
	}
}

func TestADecodersErrorIsTheProblems(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{httpmw.TypeInvalidKey: errors.New("own"), httpmw.TypeTooLarge: &http.MaxBytesError{Limit: 1}} {
		var got *httpmw.Problem
		h, failed := httpmw.NewBind(httpmw.Config{
			Locker: locktest.Memory(t), Key: "order:{OrderID}",
			ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, p *httpmw.Problem) { got = p },
		}, func(*http.Request) (*payment, error) { return nil, err }, func(http.ResponseWriter, *http.Request, *payment) { t.Error("it ran") })
		if failed != nil {
			t.Fatal(failed)
		}
		if mwtest.Call(t, h, http.MethodPost, "/"); got == nil || got.Type != want || !errors.Is(got, err) || got.Started {
			t.Errorf("%v: %+v", err, got)
		}
	}
	if _, err := httpmw.NewBind(httpmw.Config{Locker: locktest.Memory(t), Key: "order:{OrderID}"}, nil, func(http.ResponseWriter, *http.Request, *payment) {}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("no decoder: %v", err)
	}
}
