package ginmw_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/ginmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/mwtest"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func call(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	return mwtest.Call(t, h, http.MethodPost, target)
}

func TestTheLockIsHeldWhileTheHandlersAfterItRun(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	var seen []string
	note := func(name string) gin.HandlerFunc {
		state := func(when string) {
			seen = append(seen, fmt.Sprint(name, " ", when, " ", locktest.IsFree(t, locks, "order:42")))
		}
		return func(c *gin.Context) {
			state("before")
			request, writer := c.Request, c.Writer
			c.Next()
			if c.Request != request || c.Writer != writer {
				t.Errorf("%s: request or writer was not put back", name)
			}
			state("after")
		}
	}
	r := gin.New()
	r.Use(note("outside"))
	r.POST("/orders/:id", ginmw.Lock(locks, "order:{id|int}"), note("inside"), leaseName)
	if w := call(t, r, "/orders/42"); w.Body.String() != "order:42" {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	want := []string{"outside before true", "inside before false", "inside after false", "outside after true"} // free
	if !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
}

func TestOnlyWhatSucceededIsDone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first  gin.HandlerFunc
		answer int
		done   bool
	}{
		"Nothing":              {func(*gin.Context) {}, http.StatusOK, true},
		"AStatus":              {func(c *gin.Context) { c.Status(http.StatusNoContent) }, http.StatusNoContent, true},
		"ABody":                {func(c *gin.Context) { c.String(http.StatusCreated, "made") }, http.StatusCreated, true},
		"AFailureWithBody":     {func(c *gin.Context) { c.JSON(http.StatusBadGateway, "no") }, http.StatusBadGateway, false},
		"AFailureWithout":      {func(c *gin.Context) { c.Status(http.StatusBadGateway) }, http.StatusBadGateway, false},
		"AnAbort":              {func(c *gin.Context) { c.AbortWithStatus(http.StatusTeapot) }, http.StatusTeapot, false},
		"AChangeOfMind":        {func(c *gin.Context) { c.Status(200); c.JSON(http.StatusBadGateway, "no") }, http.StatusBadGateway, false},
		"AnErrorForOutside":    {func(c *gin.Context) { _ = c.Error(errors.New("no")) }, http.StatusGone, false},
		"APanic":               {func(*gin.Context) { panic("thrown") }, http.StatusInternalServerError, false},
		"AFailureUnderAWriter": {func(c *gin.Context) { c.Writer = &zipper{c.Writer}; c.Status(http.StatusBadGateway) }, http.StatusBadGateway, false},
		"AnErrorUnderAWriter":  {func(c *gin.Context) { c.Writer = &zipper{c.Writer}; _ = c.Error(errors.New("no")) }, http.StatusGone, false},
		"ABodyUnderAWriter":    {func(c *gin.Context) { c.Writer = &zipper{c.Writer}; c.JSON(http.StatusBadGateway, "no") }, http.StatusBadGateway, false},
		"ASuccessUnderAWriter": {func(c *gin.Context) { c.Writer = &zipper{c.Writer}; c.Status(http.StatusNoContent) }, http.StatusNoContent, true},
		"AnErrorAfterAnswer":   {func(c *gin.Context) { c.String(200, "ok"); _ = c.Error(errors.New("log")) }, http.StatusOK, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			r := gin.New()
			r.Use(gin.RecoveryWithWriter(io.Discard), func(c *gin.Context) {
				c.Next()
				if len(c.Errors) > 0 && !c.Writer.Written() {
					c.JSON(http.StatusGone, c.Errors.JSON())
				}
			})
			r.POST("/orders/:id", ginmw.Lock(locktest.Memory(t), "order:{id|int}", core.WithDedup(time.Hour), core.WithDedupScope("pay")), func(c *gin.Context) {
				if calls++; calls == 1 {
					test.first(c)
				}
			})
			if w := call(t, r, "/orders/42"); w.Code != test.answer {
				t.Errorf("answered %d %s, want %d", w.Code, w.Body, test.answer)
			}
			want := map[bool]int{true: http.StatusConflict, false: http.StatusOK}[test.done]
			if w := call(t, r, "/orders/42"); w.Code != want {
				t.Errorf("again: answered %d %s, want %d", w.Code, w.Body, want)
			}
		})
	}
}

// zipper is a writer that a middleware inside the lock puts around gin's, and leaves there.
type zipper struct{ gin.ResponseWriter }

// Gin only remembers it.
func TestAStatusAloneIsNoAnswerYet(t *testing.T) {
	t.Parallel()
	r := gin.New()
	r.POST("/orders/:id", ginmw.Lock(locktest.Memory(t), "order:{id|int}", core.WithMaxHold(10*time.Millisecond)), func(c *gin.Context) {
		c.Status(http.StatusNoContent)
		<-c.Request.Context().Done()
	})
	if w := call(t, r, "/orders/42"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), httpmw.TypeLost) {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

// The status is the handler's; it is not written yet when the middleware looks.
func TestAnErrorThatIsOnlyNotedLeavesTheStatusAlone(t *testing.T) {
	t.Parallel()
	noted := func(c *gin.Context) { _ = c.Error(errors.New("the mail goes out later")) }
	for what, handlers := range map[string][]gin.HandlerFunc{
		"by the handler": {ginmw.Lock(locktest.Memory(t), "order:{id|int}"), func(c *gin.Context) { noted(c); c.Status(http.StatusNoContent) }},
		"before":         {noted, ginmw.Lock(locktest.Memory(t), "order:{id|int}"), func(c *gin.Context) { c.Status(http.StatusNoContent) }},
	} {
		r := gin.New()
		r.POST("/orders/:id", handlers...)
		if w := call(t, r, "/orders/42"); w.Code != http.StatusNoContent {
			t.Errorf("%s: %d", what, w.Code)
		}
	}
}
