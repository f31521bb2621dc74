package ginmw_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/ginmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/doortest"
)

func TestDoor(t *testing.T) {
	t.Parallel()
	doortest.Run(t, newDoor)
}

func newDoor(s doortest.Setup) (http.Handler, error) {
	config := ginmw.Config{
		Locker: s.Locker, Key: s.Key, Options: s.Options, MaxBody: s.MaxBody, Logger: s.Logger,
	}
	if s.KeyFunc != nil {
		config.KeyFunc = func(c *gin.Context) (string, error) { return s.KeyFunc(c.Request) }
	}
	if s.Skipper != nil {
		config.Skipper = func(c *gin.Context) bool { return s.Skipper(c.Request) }
	}
	lock, err := config.ToHandler()
	if err != nil {
		return nil, err
	}
	r := gin.New()
	r.UseRawPath = true // paths with an escaped slash have a route
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
		for _, path := range []string{"/orders/:id", "/refunds/:id", "/plain"} {
			r.Handle(method, path, lock, func(c *gin.Context) { s.Handler(prompt{c.Writer}, c.Request) })
		}
	}
	return r, nil
}

// prompt writes a status at once, as net/http does. Gin only remembers it until there is a body.
type prompt struct{ gin.ResponseWriter }

func (w prompt) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	if status >= http.StatusOK {
		w.WriteHeaderNow()
	}
}

func (w prompt) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestLockPanicsAtConstruction(t *testing.T) {
	t.Parallel()
	defer func() {
		if s, _ := recover().(string); !strings.HasPrefix(s, "ginmw: ") {
			t.Errorf("%q", s)
		}
	}()
	ginmw.Lock(doortest.MemoryLocker(t), "order:{id")
}

func TestKeyFuncAndErrorHandlerGetGinsContext(t *testing.T) {
	t.Parallel()
	lock, err := ginmw.Config{
		Locker: doortest.MemoryLocker(t),
		KeyFunc: func(c *gin.Context) (string, error) {
			if user := c.GetString("user"); user != "" {
				return "report:" + user, nil
			}
			return "", errors.New("nobody")
		},
		ErrorHandler: func(c *gin.Context, p *httpmw.Problem) { c.String(p.Status, "not for "+c.Query("as")) },
	}.ToHandler()
	if err != nil {
		t.Fatal(err)
	}
	r := gin.New()
	r.POST("/report", func(c *gin.Context) { c.Set("user", c.Query("user")) }, lock, leaseName)
	for target, want := range map[string]string{"/report?user=ann": "report:ann", "/report?as=stranger": "not for stranger"} {
		if w := call(t, r, target); w.Body.String() != want {
			t.Errorf("%s: %d %s, want %s", target, w.Code, w.Body, want)
		}
	}
}

// leaseName answers with the name of the lease.
func leaseName(c *gin.Context) {
	x, _ := core.FromContext(c.Request.Context())
	c.String(http.StatusOK, x.Name())
}
