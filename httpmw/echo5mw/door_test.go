package echo5mw_test

import (
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"

	"github.com/holdfast-go/holdfast/httpmw/echo5mw"
	"github.com/holdfast-go/holdfast/httpmw/internal/doortest"
)

func TestDoor(t *testing.T) {
	t.Parallel()
	doortest.Run(t, newDoor)
}

func newDoor(s doortest.Setup) (http.Handler, error) {
	c := echo5mw.Config{
		Locker: s.Locker, Key: s.Key, Options: s.Options, HeldStatus: s.HeldStatus, MaxBody: s.MaxBody, Logger: s.Logger,
	}
	if s.KeyFunc != nil {
		c.KeyFunc = func(c *echo.Context) (string, error) { return s.KeyFunc(c.Request()) }
	}
	if s.Skipper != nil {
		c.Skipper = func(c *echo.Context) bool { return s.Skipper(c.Request()) }
	}
	mw, err := c.ToMiddleware()
	if err != nil {
		return nil, err
	}
	handler := func(c *echo.Context) error {
		s.Handler(c.Response(), c.Request())
		return nil
	}
	e := echo.New()
	for _, path := range []string{"/orders/:id", "/refunds/:id", "/plain"} {
		e.Match([]string{http.MethodGet, http.MethodPost, http.MethodPut}, path, handler, mw)
	}
	return e, nil
}
