package main

import (
	"context"
	"errors"
	"time"
)

// The two rounds.
const (
	bare = "bare"
	held = "held"
)

// round is one run of all the traffic, with an order book and servers of its own.
type round struct {
	name    string
	guarded bool
	slow    bool
}

func (r round) run(ctx context.Context, out *screen, s *service) (*result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the round did not end within a minute"))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)

	store, err := startStore(ctx, fail, false)
	if err != nil {
		return nil, err
	}
	defer store.close()
	res := &result{
		http:  traffic{server: "HTTP", total: calls},
		rpc:   traffic{server: "gRPC", total: calls},
		tasks: traffic{server: "asynq", total: calls + orders*ships},
	}
	queue := s.queue(r.name)
	if err := res.tasks.enqueue(ctx, s, queue); err != nil {
		return nil, err
	}
	running, err := r.open(ctx, fail, s, store)
	if err != nil {
		return nil, err
	}
	defer running.close()

	began := time.Now()
	stop := out.watch(func() string { return out.progress(res, res.lostSoFar(ctx, store.book), time.Since(began)) })
	err = together(ctx,
		func(ctx context.Context) error { return res.http.pay(ctx, running.addresses["echo"]) },
		func(ctx context.Context) error { return res.rpc.refund(ctx, running.addresses["grpc"]) },
		func(ctx context.Context) error { return res.tasks.await(ctx, s, queue) })
	stop()
	if err != nil {
		return nil, err
	}
	res.took = time.Since(began)
	if res.rows, err = store.book.audit(ctx); err != nil {
		return nil, err
	}
	out.outcome(res)
	return res, nil
}

// serving is the processes of the three servers.
type serving struct {
	processes []*process
	addresses map[string]string
}

func (r round) open(ctx context.Context, fail context.CancelCauseFunc, s *service, store *store) (_ *serving, err error) {
	d := &serving{addresses: make(map[string]string)}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	for _, name := range []string{"echo", "grpc", "asynq"} { // the worker finds its tasks at once, so it is the last one
		p, err := start(ctx, fail, role{
			Name: name, Store: store.address, Locks: s.locks, Tasks: s.tasks,
			Prefix: s.prefix(r.name), Queue: s.queue(r.name), Guarded: r.guarded, Slow: r.slow,
		})
		if err != nil {
			return nil, err
		}
		d.processes = append(d.processes, p)
		if d.addresses[name], err = p.line(ctx); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *serving) close() {
	for _, p := range d.processes {
		p.end()
	}
}

// result is what a round came to.
type result struct {
	http, rpc, tasks traffic
	rows             []Row
	took             time.Duration
}

// lostSoFar looks into a round that is under way. What it calls lost is lost: each change
// that was confirmed before the audit should be in the book.
func (r *result) lostSoFar(ctx context.Context, book *book) int {
	http, rpc := int(r.http.done.Load()), int(r.rpc.done.Load())
	rows, err := book.audit(ctx)
	if err != nil {
		return 0 // the round ends
	}
	paid, refunded, _ := kept(rows)
	return max(0, http-paid) + max(0, rpc-refunded)
}

// kept is how many changes the book has kept, for each server.
func kept(rows []Row) (paid, refunded, bonus int) {
	for _, row := range rows {
		paid += row.Paid
		refunded += row.Refunded
		bonus += row.Bonus
	}
	return paid, refunded, bonus
}

// lost is how many changes are missing, or were made twice, order by order.
func (r *result) lost() int {
	n := 0
	for _, row := range r.rows {
		for _, have := range []int{row.Paid, row.Refunded, row.Bonus} {
			n += max(calls/orders-have, have-calls/orders)
		}
	}
	return n
}

// parcels is how many parcels have left, and to how many orders.
func (r *result) parcels() (parcels, shipped int) {
	for _, row := range r.rows {
		parcels += row.Parcels
		shipped += min(row.Parcels, 1)
	}
	return parcels, shipped
}

func (r *result) doubles() int {
	parcels, shipped := r.parcels()
	return parcels - shipped
}

func (r *result) unshipped() int {
	_, shipped := r.parcels()
	return orders - shipped
}
