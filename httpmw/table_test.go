package httpmw_test

import (
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
)

func TestTheTable(t *testing.T) {
	t.Parallel()
	mwtest.Run(t, mwtest.Framework{Lock: mountLock, Bind: mountBind, Streams: true})
}

func config(s mwtest.Setup) httpmw.Config {
	return httpmw.Config{
		Locker: s.Locker, Key: s.Key, KeyFunc: s.KeyFunc, Options: s.Options, Skipper: s.Skipper, MaxBody: s.MaxBody, Logger: s.Logger,
	}
}

func mountLock(s mwtest.Setup) (http.Handler, error) {
	mw, err := httpmw.New(config(s))
	if err != nil {
		return nil, err
	}
	h := mw(http.HandlerFunc(s.Answer))
	mux := http.NewServeMux()
	for _, method := range []string{"GET ", "POST ", "PUT "} {
		mux.Handle(method+"/orders/{id}", h)
		mux.Handle(method+"/refunds/{id}", h)
		mux.Handle(method+"/plain", h)
	}
	return mux, nil
}

func mountBind(s mwtest.Setup) (http.Handler, error) {
	return httpmw.NewBind(config(s), httpmw.JSON[mwtest.Pay], s.Bound)
}
