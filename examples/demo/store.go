package main

import (
	"context"
	"fmt"
	"net"
	"net/rpc"
	"sync"
)

// Order is a row of the order book. It is read and written as a whole, so a write that is
// based on an old read undoes what others have written in the meantime.
type Order struct {
	ID       int64
	Paid     int  // payments, through HTTP
	Refunded int  // refunds, through gRPC
	Bonus    int  // bonus points, by tasks
	Shipped  bool // by a task

	// Fence is that of the lease under which the row was written, 0 without a lease.
	Fence uint64
}

// Book is the order book: a store in a process of its own, which knows nothing of locks. Its
// exported methods are its commands, in the form that net/rpc wants.
type Book struct {
	blind bool // lets late writes through, for the demo's own tests

	mu      sync.Mutex // protects the fields below
	orders  map[int64]Order
	parcels map[int64]int
}

// Read gets an order. One that was never written is empty.
func (b *Book) Read(id int64, order *Order) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	*order = b.orders[id]
	order.ID = id
	return nil
}

// Write replaces an order. It refuses a writer with a smaller fence than an earlier one had:
// that writer's lease is over, whether it knows or not. This is all that a store needs to
// be safe from late writes.
func (b *Book) Write(order Order, written *bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := b.orders[order.ID].Fence; order.Fence < last && !b.blind {
		return fmt.Errorf("fence %d is older than %d", order.Fence, last)
	}
	b.orders[order.ID] = order
	*written = true
	return nil
}

// Dispatch sends the parcel of an order on its way, and one more each time it is called.
func (b *Book) Dispatch(id int64, parcels *int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parcels[id]++
	*parcels = b.parcels[id]
	return nil
}

// Row is an order and what has become of it.
type Row struct {
	Order

	Parcels int
}

// Audit lists the orders from 1 to last.
func (b *Book) Audit(last int64, rows *[]Row) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	*rows = make([]Row, last)
	for i := range *rows {
		id := int64(i + 1)
		(*rows)[i] = Row{b.orders[id], b.parcels[id]}
	}
	return nil
}

// serveStore is the store's process.
func serveStore(ctx context.Context, r role) error {
	book := &Book{blind: r.Blind, orders: make(map[int64]Order), parcels: make(map[int64]int)}
	commands := rpc.NewServer()
	if err := commands.Register(book); err != nil {
		return err
	}
	lis, err := listen(ctx)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = lis.Close() })
	tell(lis.Addr())
	for {
		conn, err := lis.Accept()
		if err != nil {
			return nil //nolint:nilerr // the listener is closed: that is the end
		}
		go commands.ServeConn(conn)
	}
}

// store is the store's process, seen from its parent.
type store struct {
	process *process
	address string
	book    *book
}

func startStore(ctx context.Context, fail context.CancelCauseFunc, blind bool) (*store, error) {
	p, err := start(ctx, fail, role{Name: "store", Blind: blind})
	if err != nil {
		return nil, err
	}
	s := &store{process: p}
	if s.address, err = p.line(ctx); err == nil {
		s.book, err = openBook(ctx, s.address)
	}
	if err != nil {
		p.end()
		return nil, err
	}
	return s, nil
}

func (s *store) close() {
	s.book.close()
	s.process.end()
}

// book is the store as its clients see it.
type book struct{ rpc *rpc.Client }

func openBook(ctx context.Context, address string) (*book, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &book{rpc.NewClient(conn)}, nil
}

func (b *book) close() { _ = b.rpc.Close() } // nothing is left unsent

func (b *book) read(ctx context.Context, id int64) (Order, error) {
	return command[Order](ctx, b, "Read", id)
}

func (b *book) write(ctx context.Context, order Order) error {
	_, err := command[bool](ctx, b, "Write", order)
	return err
}

func (b *book) dispatch(ctx context.Context, id int64) error {
	_, err := command[int](ctx, b, "Dispatch", id)
	return err
}

func (b *book) audit(ctx context.Context) ([]Row, error) {
	return command[[]Row](ctx, b, "Audit", int64(orders))
}

func command[Reply any](ctx context.Context, b *book, name string, args any) (Reply, error) {
	var reply, none Reply
	call := b.rpc.Go("Book."+name, args, &reply, make(chan *rpc.Call, 1))
	select {
	case <-ctx.Done():
		return none, context.Cause(ctx) // the reply may still be written to
	case <-call.Done:
		return reply, call.Error
	}
}
