package natslock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/oldservice"
)

func TestConformanceToTheNewContract(t *testing.T) {
	t.Parallel()
	server := servers.NATS(t)
	drivertest.Run(t, func(tb testing.TB) drivertest.Config {
		return oldservice.Config(at(tb.(*testing.T), server.Addr()), 250*time.Millisecond)
	})
}
