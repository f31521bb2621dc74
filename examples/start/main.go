// Start is the service of docs/getting-started.md: one locked route, with nothing to set up.
//
//	go run ./examples/start
//	curl -i -X POST localhost:8080/orders/42/pay
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
)

func main() {
	locks, err := core.New(memlock.New()) // one for the whole process
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("localhost:8080", routes(locks)))
}

func routes(locks *core.Locker) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/pay", httpmw.Lock(locks, "order:{id|int}")(http.HandlerFunc(pay)))
	return mux
}

func pay(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(5 * time.Second): // the work
		fmt.Fprintln(w, "paid", r.PathValue("id"))
	case <-r.Context().Done(): // the client has left, or the lock is lost: stop
	}
}
