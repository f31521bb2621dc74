package recipe_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	recipe "github.com/holdfast-go/holdfast/examples/recipes/gin"
	"github.com/holdfast-go/holdfast/httpmw"
)

func TestHostilePathsGetLocksOfTheirOwnNames(t *testing.T) {
	t.Parallel()
	r := gin.New()
	lock := httpmw.Lock(newLocker(t), strings.Replace(hostile.Template, "{v}", "{id}", 1))
	r.POST("/orders/:id", recipe.Wrap(lock), leaseName)
	var names hostile.Names
	for what, value := range hostile.Values() {
		w := call(t, r, http.MethodPost, "/orders/"+url.PathEscape(value))
		if strings.Contains(value, "/") && (w.Code == http.StatusNotFound || w.Code == http.StatusTemporaryRedirect) {
			continue // gin routes by the unescaped path
		}
		if w.Code != http.StatusOK {
			t.Errorf("%s: answered %d %s", what, w.Code, w.Body)
			continue
		}
		names.Check(t, value, w.Body.String())
	}
}
