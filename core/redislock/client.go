package redislock

import (
	"errors"
	"reflect"

	"github.com/redis/go-redis/v9"
)

// fits says why a client cannot be used for locks, or returns nil.
func fits(rdb redis.UniversalClient) error {
	if isNil(rdb) {
		return errors.New("redislock: nil client")
	}
	switch rdb := rdb.(type) {
	case *redis.Client:
		if caches(rdb.Options()) {
			return errors.New("redislock: client-side caching answers from memory what only the server knows")
		}
	case *redis.ClusterClient:
		if o := rdb.Options(); o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
			return errors.New("redislock: replicas do not know who holds a lock: ReadOnly, RouteByLatency and RouteRandomly must be off")
		}
	case *redis.Ring:
		return errors.New("redislock: a Ring moves names to other servers when one fails: two holders")
	}
	return nil
}

// caches says whether a client answers from memory. These options exist since go-redis 9.22, and older versions are
// welcome.
func caches(o *redis.Options) bool {
	options := reflect.ValueOf(o).Elem()
	for _, name := range []string{"ClientSideCache", "ClientSideCacheConfig"} {
		if f := options.FieldByName(name); f.IsValid() && !f.IsZero() {
			return true
		}
	}
	return false
}

// punctual returns a client on the same connections that respects deadlines, if possible, and
// says whether it does. A plain client can be cloned with its options; a Cluster client cannot.
// With a negative timeout, go-redis would set no deadline at all.
func punctual(rdb redis.UniversalClient) (redis.UniversalClient, bool) {
	if isNil(rdb) {
		return rdb, false
	}
	switch rdb := rdb.(type) {
	case *redis.Client:
		timeouts := *rdb.Options()
		clone := rdb.WithTimeout(max(0, timeouts.ReadTimeout)) // has options of its own
		clone.Options().WriteTimeout = max(0, timeouts.WriteTimeout)
		clone.Options().ContextTimeoutEnabled = true
		return clone, true
	case *redis.ClusterClient:
		o := rdb.Options()
		return rdb, o.ContextTimeoutEnabled && o.ReadTimeout >= 0 && o.WriteTimeout >= 0
	default:
		return rdb, false
	}
}

func isNil(rdb redis.UniversalClient) bool {
	v := reflect.ValueOf(rdb)
	return rdb == nil || v.Kind() == reflect.Pointer && v.IsNil()
}
