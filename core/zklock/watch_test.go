package zklock

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// The client keeps every watch that it was asked for until that fires, which may take as long
// as a lease lasts.
func TestThoseWhoWaitForTheSameOneShareAWatch(t *testing.T) {
	t.Parallel()
	session := new(Session)
	conn, _, err := zk.Connect([]string{servers.ZooKeeper(t).Addr()}, 10*time.Second,
		zk.WithDialer(session.Dial), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := New(conn, session)
	create := func() string {
		path, err := conn.Create("/x-", nil, zk.FlagEphemeralSequential, s.acl)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	trip := &trip{Store: s, ctx: t.Context()}
	watch := func(path string) <-chan zk.Event {
		fires, err := trip.watch(path)
		if err != nil {
			t.Fatal(err)
		}
		return fires
	}
	first, second := create(), create()
	fires := watch(first)
	if watch(first) != fires {
		t.Error("a second watch")
	}
	if err := conn.Delete(first, -1); err != nil {
		t.Fatal(err)
	}
	for range 2 { // whoever waits
		<-fires
	}
	watch(second)
	if len(s.watches) != 1 {
		t.Errorf("%d watches are remembered", len(s.watches))
	}
}
