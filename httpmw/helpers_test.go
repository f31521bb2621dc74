package httpmw_test

import (
	"net/http"

	"github.com/holdfast-go/holdfast/core"
)

// leaseName answers with the name of the lease.
var leaseName http.HandlerFunc = func(w http.ResponseWriter, r *http.Request) {
	if x, ok := core.FromContext(r.Context()); ok {
		_, _ = w.Write([]byte(x.Name()))
	}
}
