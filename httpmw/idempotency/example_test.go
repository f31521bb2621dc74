package idempotency_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw/idempotency"
)

// A client that has lost the answer sends its request again, and gets that answer.
func Example() {
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	charges := 0
	pay := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		charges++
		_, _ = fmt.Fprint(w, "charged")
	})
	account := func(*http.Request) (string, error) { return "account-7", nil } // who has authenticated
	h := idempotency.Middleware(locks, new(idempotency.MemoryStore), account)(pay)
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader("42"))
		r.Header.Set("Idempotency-Key", "b7c9")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Printf("%d %s, replayed %q\n", w.Code, w.Body, w.Header().Get("Idempotent-Replayed"))
	}
	fmt.Println("charges:", charges)
	// Output:
	// 200 charged, replayed ""
	// 200 charged, replayed "true"
	// charges: 1
}
