package mwtest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// Backend is memlock that can be made to fail.
type Backend struct {
	*memlock.Store

	Down   atomic.Bool // it does not answer
	Robbed atomic.Bool // whatever is released has another owner

	Waits chan struct{} // if it is made, gets something for each wait that begins
}

var _ driver.Driver = (*Backend)(nil)

// Secret is in every error of the backend, and must not get out.
const Secret = "redis-7.internal:6379"

var errDown = errors.Join(driver.ErrNotSent, errors.New("dial "+Secret))

// Acquire implements driver.Driver.
func (b *Backend) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if b.Down.Load() {
		return driver.Grant{}, errDown
	}
	return b.Store.Acquire(ctx, c)
}

// Release implements driver.Driver.
func (b *Backend) Release(ctx context.Context, c driver.Claim) error {
	err := b.Store.Release(ctx, c)
	if b.Robbed.Load() {
		return driver.ErrNotOwner
	}
	return err
}

// Wait implements driver.Driver.
func (b *Backend) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	select {
	case b.Waits <- struct{}{}:
	default:
	}
	if b.Down.Load() {
		return driver.Grant{}, errDown
	}
	return b.Store.Wait(ctx, c)
}
