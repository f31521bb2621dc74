package etcdlock_test

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/etcdlock"
)

func open() (*core.Locker, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:         []string{"etcd-1:2379", "etcd-2:2379", "etcd-3:2379"},
		DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 2 * time.Second, // to notice a member that has gone silent
	})
	if err != nil {
		return nil, err
	}
	return core.New(etcdlock.New(client)) // the client stays yours to close
}

var _ = open

func Example() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"etcd-1:2379", "etcd-2:2379", "etcd-3:2379"}})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	locks, err := core.New(etcdlock.New(client, etcdlock.WithPrefix("shop/")))
	if err != nil {
		panic(err)
	}
	fmt.Println(locks.Close(context.Background()))
	// Output: <nil>
}
