package redisstore_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/httpmw/idempotency"
	"github.com/holdfast-go/holdfast/httpmw/redisstore"
)

func Example() {
	server, err := miniredis.Run() // stands for your Redis
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{
		Addr:                     server.Addr(),
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, // which miniredis has not
	})
	defer rdb.Close()
	locks, err := core.New(redislock.New(rdb))
	if err != nil {
		panic(err)
	}

	payments := 0
	pay := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		payments++
		fmt.Fprint(w, "payment ", payments)
	})
	account := func(*http.Request) (string, error) { return "ann", nil } // who has authenticated
	h := idempotency.Middleware(locks, redisstore.New(rdb), account)(pay)

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/payments", http.NoBody)
		r.Header.Set("Idempotency-Key", "8e03978e-40d5-43dd-bc93-6894a57f9324")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Printf("%s, again: %t\n", w.Body, w.Header().Get("Idempotent-Replayed") == "true")
	}
	// Output:
	// payment 1, again: false
	// payment 1, again: true
}
