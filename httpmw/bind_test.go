package httpmw_test

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
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
)

type payment struct {
	OrderID int64  `json:"order_id"`
	Account string `json:"account"`
}

func pay(h http.Handler, contentType, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/pay?order_id=9", strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWhatIsDecodedIsLocked(t *testing.T) {
	t.Parallel()
	h := httpmw.Bind(mwtest.MemoryLocker(t), "order:{OrderID} account:{Account}", httpmw.JSON[payment],
		func(w http.ResponseWriter, r *http.Request, req *payment) {
			for _, name := range []string{"order:" + strconv.FormatInt(req.OrderID, 10), "account:" + req.Account} {
				if _, err := core.FenceFor(r.Context(), name); err != nil {
					t.Error(err)
				}
			}
			w.WriteHeader(http.StatusNoContent)
		})
	const asJSON = "application/json; charset=utf-8"
	for _, row := range []struct {
		contentType, body string
		status            int
		says              string
	}{
		{asJSON, `{"order_id":7,"account":"ann"}`, 204, ""},
		{asJSON, `{"order_id":7,"ORDER_ID":8,"account":"ann"}`, 204, ""},
		{asJSON, `{"order_id":7}`, 400, `"source":"Account","reason":"missing"`},
		{asJSON, `{"account":"ann"}`, 400, `"source":"OrderID","reason":"missing"`},
		{asJSON, `{"order_id":"7","account":"ann"}`, 400, httpmw.TypeInvalidKey},
		{asJSON, `{"order_id":7,"account":"ann"}{}`, 400, httpmw.TypeInvalidKey},
		{asJSON, ``, 400, httpmw.TypeInvalidKey},
		{asJSON, `{"order_id":7,"account":"` + strings.Repeat("x", 1<<20) + `"}`, 413, httpmw.TypeTooLarge},
		{"", `{"order_id":7,"account":"ann"}`, 400, httpmw.TypeInvalidKey},
		{"Application/JSON", `{"order_id":7,"account":"ann"}`, 400, httpmw.TypeInvalidKey},
		{"application/x-www-form-urlencoded", `order_id=7&account=ann`, 400, httpmw.TypeInvalidKey},
	} {
		if w := pay(h, row.contentType, row.body); w.Code != row.status || !strings.Contains(w.Body.String(), row.says) {
			t.Errorf("%q, %.60s: %d %s", row.contentType, row.body, w.Code, w.Body)
		}
	}
}

func TestADecodersErrorIsTheProblems(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	for want, err := range map[string]error{httpmw.TypeInvalidKey: own, httpmw.TypeTooLarge: &http.MaxBytesError{Limit: 1}} {
		var got *httpmw.Problem
		h, failed := httpmw.NewBind(httpmw.Config{
			Locker: mwtest.MemoryLocker(t), Key: "order:{OrderID}",
			ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, p *httpmw.Problem) { got = p },
		}, func(*http.Request) (*payment, error) { return nil, err }, func(http.ResponseWriter, *http.Request, *payment) { t.Error("it ran") })
		if failed != nil {
			t.Fatal(failed)
		}
		if pay(h, "", ""); got == nil || got.Type != want || !errors.Is(got, err) || got.Started {
			t.Errorf("%v: %+v", err, got)
		}
	}
}

func TestJSONReadsNoMoreThanItsLimit(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat(" ", 3<<20)))
	r.Header.Set("Content-Type", "application/json")
	if _, err := httpmw.JSON[payment](r); !errors.Is(err, key.ErrTooLarge) {
		t.Error(err)
	}
}
