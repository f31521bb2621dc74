package memcachedlock

import (
	"errors"
	"net"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core/driver"
)

// classify marks the errors after which the server has certainly not executed the command:
// there was no connection to send it on. The commands before it in the same call have only
// looked.
func classify(err error) error {
	if _, slow := errors.AsType[*memcache.ConnectTimeoutError](err); slow { // it says nothing to package net
		return driver.NotSent(driver.Unavailable(err))
	}
	op, ok := errors.AsType[*net.OpError](err)
	if ok && op.Op == "dial" || errors.Is(err, memcache.ErrNoServers) || errors.Is(err, memcache.ErrMalformedKey) {
		return driver.NotSent(err)
	}
	return err
}
