//go:build !unix

package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/holdfast-go/holdfast/core/cmd/holdfast/internal/child"
)

// relay ends the wait when it is interrupted. There are no commands here.
type relay struct{ ctx context.Context } //nolint:containedctx // that which the signal ends

func newRelay(ctx context.Context) (context.Context, *relay) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx, &relay{ctx}
}

func (r *relay) start(begin func() (*child.Child, error), _ func() error) (c *child.Child, detach func(), failed error) {
	c, failed = begin()
	return c, func() {}, failed
}

func (r *relay) ended() bool                                { return r.ctx.Err() != nil }
func (r *relay) instead(status int, err error) (int, error) { return status, err }
func (r *relay) stop()                                      {}
