package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// openRedlock makes a client for each host, all with the same user, database and parameters.
func openRedlock(_ context.Context, a *address, o Options) (*Backend, error) {
	fence := a.take("fence")
	if fence != "" && fence != "on" && fence != "off" {
		return nil, fmt.Errorf("fence=%q: neither on nor off", fence)
	}
	if a.query.Has("replicas") {
		return nil, errors.New("replicas: the nodes of a Redlock are servers without replicas")
	}
	opts, err := a.storeOptions()
	if err != nil {
		return nil, err
	}
	hosts, err := a.ports("", "6379")
	if err != nil {
		return nil, err
	}
	const fewest = 3
	if len(hosts) < fewest {
		return nil, fmt.Errorf("%d hosts: a Redlock has at least %d, and better 5; for one server use redis://", len(hosts), fewest)
	}
	b := &Backend{Prefix: opts.prefix}
	var nodes []driver.Driver
	for i, host := range hosts {
		if slices.Contains(hosts[:i], host) {
			b.Close()
			return nil, fmt.Errorf("host %s is there twice, and would have two votes", host)
		}
		one := address{scheme: a.scheme, user: a.user, hosts: []string{host}, query: a.query}
		rdb, err := redisClient(one.url(a.path), o)
		if err != nil {
			b.Close()
			return nil, err
		}
		node := redisBackend(rdb, opts)
		nodes, b.close = append(nodes, node.Driver), append(b.close, node.close...)
	}
	var quorum []redlock.Option
	if fence == "on" {
		quorum = append(quorum, redlock.WithFence())
	}
	b.Driver = redlock.New(nodes, quorum...)
	return b, nil
}
