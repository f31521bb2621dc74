package echo5mw_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/echo5mw"
)

// One report at a time for each user, who is known by then: authentication stands outside.
// Refusals have the shape that Echo's HTTPErrorHandler gives to errors.
func ExampleConfig() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	auth := middleware.BasicAuth(func(c *echo.Context, user, password string) (bool, error) {
		c.Set("user", user)
		return password == "secret", nil
	})
	report := key.MustParse("report:{user}")
	lock, err := echo5mw.New(echo5mw.Config{
		Locker: locks,
		KeyFunc: func(c *echo.Context) (string, error) {
			user, _ := c.Get("user").(string)
			return report.Name(user)
		},
		ErrorHandler: func(_ *echo.Context, p *httpmw.Problem) error {
			return echo.NewHTTPError(p.Status, p.Title)
		},
	})
	if err != nil {
		panic(err)
	}
	e := echo.New()
	e.POST("/report", func(c *echo.Context) error {
		lease, _ := core.FromContext(c.Request().Context())
		return c.String(http.StatusOK, "under the lock "+lease.Name())
	}, auth, lock)

	for _, user := range []string{"ann", ""} { // the second one has no name
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/report", http.NoBody)
		r.SetBasicAuth(user, "secret")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 200 under the lock report:ann
	// 400 {"message":"Resource is not identified"}
}
