package memcachedlock

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core/driver"
)

// unsent is the error for a command that ctx is too late for.
func unsent(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return errors.Join(driver.ErrNotSent, err)
	}
	return nil
}

// classify marks the errors after which the server has certainly not executed the command:
// there was no connection to send it on. The commands before it in the same call have only
// looked.
func classify(err error) error {
	if _, slow := errors.AsType[*memcache.ConnectTimeoutError](err); slow { // it says nothing to package net
		return &notSent{fmt.Errorf("%w: %w", driver.ErrCannotAnswer, err)}
	}
	op, ok := errors.AsType[*net.OpError](err)
	if ok && op.Op == "dial" || errors.Is(err, memcache.ErrNoServers) || errors.Is(err, memcache.ErrMalformedKey) {
		return &notSent{err}
	}
	return err
}

// notSent is driver.ErrNotSent with the client's error, whose text it keeps.
type notSent struct{ error }

func (e *notSent) Unwrap() []error { return []error{driver.ErrNotSent, e.error} }
