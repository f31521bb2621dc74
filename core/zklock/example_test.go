package zklock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/zklock"
)

func open(servers []string) (*core.Locker, error) {
	var session zklock.Session
	conn, _, err := zk.Connect(servers, 25*time.Second, zk.WithDialer(session.Dial)) // for TTLs of up to 10 s
	if err != nil {
		return nil, err
	}
	return core.New(zklock.New(conn, &session), core.WithTTL(10*time.Second))
}

var _ = open

func Example() {
	var session zklock.Session
	servers := []string{"127.0.0.1:2181"} // of an ensemble, all
	conn, _, err := zk.Connect(servers, 25*time.Second, zk.WithDialer(session.Dial))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	locks, err := core.New(zklock.New(conn, &session, zklock.WithRoot("/shop/locks")))
	if err != nil {
		panic(err)
	}
	fmt.Println(locks.Close(context.Background()))
	// Output: <nil>
}
