package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// place is where the locks are.
type place struct {
	address, password string
	prefix            string
	cluster           bool
}

func (at *place) define(flags *flag.FlagSet, getenv func(string) string) {
	flags.StringVar(&at.address, "redis", "", "`address` of the server, host:port or URL ($HOLDFAST_REDIS, or 127.0.0.1:6379)")
	flags.StringVar(&at.prefix, "prefix", cmp.Or(getenv("HOLDFAST_PREFIX"), "holdfast:"), "what the keys begin with ($HOLDFAST_PREFIX)")
	flags.BoolVar(&at.cluster, "cluster", false, "the server is part of a Redis Cluster")
	at.address = cmp.Or(getenv("HOLDFAST_REDIS"), "127.0.0.1:6379") // no default of the flag, which -h would show
	at.password = getenv("HOLDFAST_REDIS_PASSWORD")
}

const (
	dialTimeout = 3 * time.Second
	callTimeout = 5 * time.Second
)

// open returns a Locker that only looks, and a function that closes it.
func (at *place) open() (locks *core.Locker, closeAll func(), err error) {
	logging.Disable() // what goes wrong comes back as an error
	rdb, err := at.dial()
	if err != nil {
		return nil, nil, err
	}
	locks, err = core.New(redislock.New(rdb, redislock.WithPrefix(at.prefix)))
	if err != nil {
		_ = rdb.Close()
		return nil, nil, err
	}
	return locks, func() {
		_ = locks.Close(context.Background()) // it holds nothing
		_ = rdb.Close()
	}, nil
}

func (at *place) dial() (redis.UniversalClient, error) {
	noNotifications := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if at.cluster {
		o, err := redis.ParseClusterURL(at.url())
		if err != nil {
			return nil, errAddress
		}
		o.Password = cmp.Or(o.Password, at.password)
		o.DialTimeout, o.ContextTimeoutEnabled, o.MaintNotificationsConfig = dialTimeout, true, noNotifications
		return redis.NewClusterClient(o), nil
	}
	o, err := redis.ParseURL(at.url())
	if err != nil {
		return nil, errAddress
	}
	o.Password = cmp.Or(o.Password, at.password)
	o.DialTimeout, o.DialerRetries, o.MaintNotificationsConfig = dialTimeout, 1, noNotifications
	return redis.NewClient(o), nil
}

func (at *place) url() string {
	if strings.Contains(at.address, "://") {
		return at.address
	}
	return "redis://" + at.address
}

// errAddress says nothing of the address, nor do the errors of its parsers come out: either may
// have a password, or the part of one that stands behind a '/', which ends the host.
var errAddress = errors.New("holdfast: -redis: neither host:port nor a URL, redis://[user:password@]host:port[/database]; " +
	"what is special in a password is percent-encoded there")
