package redislock_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// One server, over TLS. For an authority of your own the Config has RootCAs, and Certificates for
// a server that asks the program for one.
func Example_tls() {
	rdb := redis.NewClient(&redis.Options{
		Addr:      "redis:6379",
		Username:  "locks",
		Password:  os.Getenv("REDIS_PASSWORD"),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	})
	defer rdb.Close()
	locks, err := core.New(redislock.New(rdb))
	if err != nil {
		panic(err)
	}
	fmt.Println(locks.Close(context.Background()))
	// Output: <nil>
}

// A master that Sentinels watch over, with a user for the servers and one for the Sentinels,
// all over TLS. Passwords come from the environment, not from the program's text.
func Example_sentinel() {
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:       "main",
		SentinelAddrs:    []string{"sentinel-1:26379", "sentinel-2:26379", "sentinel-3:26379"},
		SentinelUsername: "locks",
		SentinelPassword: os.Getenv("SENTINEL_PASSWORD"),
		Username:         "locks",
		Password:         os.Getenv("REDIS_PASSWORD"),
		TLSConfig:        &tls.Config{MinVersion: tls.VersionTLS12}, // RootCAs, for an authority of your own
	})
	defer rdb.Close()
	locks, err := core.New(redislock.New(rdb))
	if err != nil {
		panic(err)
	}
	fmt.Println(locks.Close(context.Background()))
	// Output: <nil>
}

// ContextTimeoutEnabled lets a Cluster client heed the bounds of lock commands, which spares
// a goroutine for many a command.
func Example_cluster() {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:                 []string{"node-1:6379", "node-2:6379", "node-3:6379"},
		Username:              "locks",
		Password:              os.Getenv("REDIS_PASSWORD"),
		TLSConfig:             &tls.Config{MinVersion: tls.VersionTLS12},
		ContextTimeoutEnabled: true,
	})
	defer rdb.Close()
	locks, err := core.New(redislock.New(rdb))
	if err != nil {
		panic(err)
	}
	fmt.Println(locks.Close(context.Background()))
	// Output: <nil>
}
