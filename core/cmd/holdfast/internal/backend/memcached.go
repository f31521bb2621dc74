package backend

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core/memcachedlock"
)

func openMemcached(_ context.Context, a *address, _ Options) (*Backend, error) {
	hosts, err := a.ports("localhost", "11211")
	if err != nil {
		return nil, err
	}
	if strings.Trim(a.path, "/") != "" || a.user != nil {
		return nil, errors.New("memcached has neither a path nor users")
	}
	prefix := "holdfast:"
	if a.query.Has("prefix") {
		prefix = a.take("prefix")
	}
	if err := a.leftovers(); err != nil {
		return nil, err
	}
	servers := new(memcache.ServerList)
	if err := servers.SetServers(hosts...); err != nil {
		return nil, &unreachableError{err} // it resolves the names
	}
	mc := memcache.NewFromSelector(servers)
	mc.Timeout = time.Second
	return &Backend{
		Driver: memcachedlock.New(mc, memcachedlock.WithPrefix(prefix)), Prefix: prefix,
		close: []func(){func() { _ = mc.Close() }},
	}, nil
}
