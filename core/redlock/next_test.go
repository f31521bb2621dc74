package redlock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest"
	old "github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/internal/olddriver"
	"github.com/holdfast-go/holdfast/core/internal/oldservice"
	"github.com/holdfast-go/holdfast/core/redlock"
)

func TestConformanceToTheNewContractInMemory(t *testing.T) {
	t.Parallel()
	drivertest.RunInBubble(t, func(testing.TB) drivertest.Config {
		stores := memory(3)
		return oldservice.Config(olddrivertest.Service{Driver: func() driver.Driver { return redlock.New(stores) }}, time.Millisecond)
	})
}
