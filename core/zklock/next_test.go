package zklock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/oldservice"
)

func TestConformanceToTheNewContract(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	var cases atomic.Int64
	drivertest.Run(t, func(tb testing.TB) drivertest.Config {
		return oldservice.Config(at(tb.(*testing.T), server.Addr(), fmt.Sprintf("/new-%d", cases.Add(1)), 20*time.Second), 250*time.Millisecond)
	})
}
