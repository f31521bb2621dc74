package memcachedlock

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core/driver"
)

// classify marks the errors after which the server has certainly not executed the command:
// there was no connection to send it on. The commands before it in the same call have only
// looked. To all errors it adds what to do about them, as far as it knows.
func classify(err error) error {
	if _, slow := errors.AsType[*memcache.ConnectTimeoutError](err); slow { // it says nothing to package net
		return driver.NotSent(driver.Unavailable(err))
	}
	op, ok := errors.AsType[*net.OpError](err)
	switch {
	case ok && op.Op == "dial", errors.Is(err, memcache.ErrMalformedKey):
		return driver.NotSent(err)
	case errors.Is(err, memcache.ErrNoServers):
		return driver.NotSent(driver.Because(err, adviceNoServers))
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return driver.Because(err, adviceClosed)
	}
	return explain(err)
}

// What an operator reads. core logs these texts, so nothing of the server's is in them.
const (
	adviceNoServers = "the client has no server: memcache.New leaves out hosts whose names cannot be resolved, and memcache.ServerList.SetServers says which"
	adviceClosed    = "the connection was closed without an answer; if that goes on, the server wants TLS or the binary protocol, or is no memcached"
	adviceAuth      = "memcached wants a user and a password (-Y): the client's DialContext sends them, as in docs/backends/memcached.md"
	adviceFull      = "memcached has no room for the lock: give it more memory (-m)"
	adviceClients   = "memcached has as many connections as it takes (-c)"
	adviceProxy     = "something between the client and memcached cannot reach the server of this name"
	adviceStranger  = "what answers at this address is no memcached: check host and port"
)

// explain adds to an answer that the client does not know what it means. Only the beginning of the server's own words
// counts, since the rest may quote a name.
func explain(err error) error {
	if err == nil || !strings.HasPrefix(err.Error(), "memcache: unexpected ") {
		return err
	}
	_, answer, _ := strings.Cut(err.Error(), `: "`)
	begins := func(words string) bool { return strings.HasPrefix(answer, words) }
	switch {
	case begins("CLIENT_ERROR unauthenticated"):
		return driver.Refused(driver.Because(err, adviceAuth))
	case begins("SERVER_ERROR out of memory"):
		return driver.Because(err, adviceFull)
	case begins("ERROR Too many open connections"):
		return driver.Because(err, adviceClients)
	case begins("SERVER_ERROR"): // in words of a proxy
		return driver.Because(err, adviceProxy)
	case begins("CLIENT_ERROR"), begins("ERROR"):
		return err
	default:
		return driver.Refused(driver.Because(err, adviceStranger))
	}
}
