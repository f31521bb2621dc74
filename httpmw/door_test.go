package httpmw_test

import (
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/doortest"
)

func TestDoor(t *testing.T) {
	t.Parallel()
	doortest.Run(t, newDoor)
}

func newDoor(s doortest.Setup) (http.Handler, error) {
	mw, err := httpmw.Config{
		Locker: s.Locker, Key: s.Key, KeyFunc: s.KeyFunc, Options: s.Options, Skipper: s.Skipper,
		MaxBody: s.MaxBody, Logger: s.Logger,
	}.Middleware()
	if err != nil {
		return nil, err
	}
	h := mw(s.Handler)
	mux := http.NewServeMux()
	for _, method := range []string{"GET ", "POST ", "PUT "} {
		mux.Handle(method+"/orders/{id}", h)
		mux.Handle(method+"/refunds/{id}", h)
		mux.Handle(method+"/plain", h)
	}
	return mux, nil
}
