package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw/idempotency"
	"github.com/holdfast-go/holdfast/httpmw/sqlstore"
)

// A service keeps its answers in its own database. When it starts, it calls answers.Create, or has the table
// among its migrations.
func Example() {
	db := new(sql.DB) // stands for yours
	answers, err := sqlstore.New(db, sqlstore.Postgres, "shop.answers")
	if err != nil {
		panic(err)
	}
	locks, err := core.New(memlock.New()) // stands for yours, too
	if err != nil {
		panic(err)
	}
	account := func(r *http.Request) (string, error) { return r.Header.Get("X-Account"), nil } // set by the gateway
	pay := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })

	mux := http.NewServeMux()
	mux.Handle("POST /payments", idempotency.Middleware(locks, answers, account)(pay))

	_, err = sqlstore.New(db, sqlstore.Postgres, "answers; DROP TABLE orders")
	fmt.Println(errors.Is(err, core.ErrInvalid))
	// Output:
	// true
}
