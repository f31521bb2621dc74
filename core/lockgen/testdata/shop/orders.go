// Package shop has interfaces with locks, for the tests of lockgen.
package shop

import (
	"context"
	"io"
)

//go:generate go run github.com/holdfast-go/holdfast/core/lockgen

// OrderID has a type of its own.
type OrderID string

// Refund is a request.
type Refund struct {
	OrderID OrderID
	To      struct{ Account int64 }
	From    *Account
	Ratio   float64
}

// Account may be missing in a request.
type Account struct{ ID int64 }

// Transfer embeds an account, which may be missing too.
type Transfer struct {
	*Account

	Amount int64
}

// Orders is what a service offers.
type Orders interface {
	io.Closer
	// Refund has documentation, too.
	//holdfast:lock order:{req.OrderID}
	Refund(ctx context.Context, req *Refund) (receipt string, err error)
	//holdfast:lock order:{id|uuid} wait=2s dedup=24h
	Ship(ctx context.Context, id string) error
	//holdfast:lock account:{from} account:{to} ttl=1500ms
	Move(ctx context.Context, from, to int64, _ bool, notes ...string) (int, error)
	//holdfast:lock orders shared
	Count(context.Context) (n int, w io.Writer, err error)
	//holdfast:lock ratio:{req.Ratio}
	Float(ctx context.Context, req Refund) error
	//holdfast:lock account:{key.From.ID}:{time}
	Debit(ctx context.Context, key Refund, time string) error
	//holdfast:lock account:{to.ID}
	Credit(ctx context.Context, to *Transfer) error
	List(ctx context.Context) ([]string, error)
}

type store[K comparable, V io.Reader] interface {
	//holdfast:lock item:{id} limit=3
	get(ctx context.Context, id K) (V, error)
}
