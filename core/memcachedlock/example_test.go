package memcachedlock_test

import (
	"context"
	"fmt"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memcachedlock"
)

func Example() {
	mc := memcache.New("memcached:11211") // one server: several would each have their own idea of a lock
	defer mc.Close()
	locks, err := core.New(memcachedlock.New(mc, memcachedlock.WithPrefix("shop:")))
	if err != nil {
		panic(err)
	}
	fmt.Println(locks.Close(context.Background()))
	// Output: <nil>
}
