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

// post shows the answer of e.
func post(e *echo.Echo, target string) {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, target, http.NoBody))
	fmt.Println(w.Code, w.Body)
}

// Refusals in the shape that Echo's HTTPErrorHandler gives to errors.
func ExampleConfig() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	mw, err := echo5mw.New(echo5mw.Config{
		Locker: locks,
		Key:    "tenant:{query:tenant|text}",
		ErrorHandler: func(_ *echo.Context, p *httpmw.Problem) error {
			return echo.NewHTTPError(p.Status, p.Title)
		},
	})
	if err != nil {
		panic(err)
	}
	e := echo.New()
	e.POST("/report", func(c *echo.Context) error { return c.String(http.StatusOK, "report") }, mw)

	post(e, "/report?tenant=acme")
	post(e, "/report")
	// Output:
	// 200 report
	// 400 {"message":"Resource is not identified"}
}

// One report at a time for each user, who is known by then: authentication stands outside.
func ExampleConfig_keyFunc() {
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
	})
	if err != nil {
		panic(err)
	}
	e := echo.New()
	e.POST("/report", func(c *echo.Context) error {
		lease, _ := core.FromContext(c.Request().Context())
		return c.String(http.StatusOK, "under the lock "+lease.Name())
	}, auth, lock)

	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/report", http.NoBody)
	r.SetBasicAuth("ann", "secret")
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
	post(e, "/report") // a stranger
	// Output:
	// 200 under the lock report:ann
	// 401 {"message":"Unauthorized"}
}
