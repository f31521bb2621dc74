package backendtest_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestAStormInMemoryFindsNothing(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	backendtest.Storm{Process: func() (driver.Driver, []*faultproxy.Proxy) { return store, nil }}.Run(t)
}
