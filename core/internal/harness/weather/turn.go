//go:build linux

package weather

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// turn makes one call, and holds what it gets.
func (w *worker) turn(t *turn) {
	if x := w.acquire(t); x != nil {
		w.over(x, t, w.hold(x, t))
	}
}

// over ends a turn.
func (w *worker) over(x Lease, t *turn, last int64) {
	if t.end != nil {
		t.end(x, t, last)
	} else {
		w.release(x, t, last)
	}
}

// note writes an event of a turn, one for each of its names.
func (w *worker) note(t *turn, e Event) {
	if e.At == 0 {
		e.At = now()
	}
	e.Worker, e.Mode = w.Life, t.mode
	for _, name := range t.names {
		e.ID, e.Name = t.part(name), name
		w.log.write(e)
	}
}

func (w *worker) acquire(t *turn) Lease {
	ctx, cancel := t.caller, context.CancelFunc(func() {})
	if ctx == nil {
		ctx, cancel = context.WithTimeout(t.under(), t.patience)
	}
	defer cancel()
	begin := now()
	w.note(t, Event{At: begin, Kind: Asked, Try: t.try, Deadline: begin + int64(t.patience), Handoff: t.handoff})
	x, err := w.locks.Get(ctx, Ask{t.names, t.try, t.by, t.opts})
	at := now()
	t.turnsOut(x, err)
	for _, name := range t.names {
		e := Event{
			At: at, Kind: Answered, Worker: w.Life, ID: t.part(name), Name: name, Mode: t.mode,
			Try: t.try, Class: class(err), Error: text(err), Keep: int64(t.keep), Handoff: t.handoff, Inside: t.inside,
		}
		if err == nil {
			e.Fence = x.FenceOf(name)
		}
		w.log.write(e)
	}
	if err != nil {
		return nil
	}
	return x
}

// under is the context in which it is asked for.
func (t *turn) under() context.Context {
	if t.outer == nil {
		return context.Background()
	}
	return t.outer.Context()
}

// turnsOut says of which mode a lease is, that depends on more than what was asked for.
func (t *turn) turnsOut(x Lease, err error) {
	if t.outer != nil && !t.joined(x, err) {
		t.mode, t.inside = Alone, ""
	}
	if own, ok := x.(single); ok && err == nil && own.Degraded() {
		t.mode = Degraded
		t.hold = min(t.hold, TTL/4) // so that the next outage begins under a lease that is not
	}
}

// class is what became of a call, in one word.
func class(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "ended"
	case errors.Is(err, core.ErrDuplicate):
		return "done"
	case errors.Is(err, core.ErrHeld):
		return "held"
	case errors.Is(err, core.ErrLost):
		return "lost"
	case errors.Is(err, core.ErrClosed):
		return "closed"
	case errors.Is(err, core.ErrUnavailable):
		return "unavailable"
	default:
		return "other"
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// hold works under the lease: it writes to the store, and notes when the lease could last be
// trusted. Deaf work does not listen to its context. That the lease is trusted is asked for
// after the instant is read: trust never comes back, so it stood at that instant too.
func (w *worker) hold(x Lease, t *turn) (last int64) {
	ctx := x.Context()
	until := now() + int64(t.hold)
	noted := int64(0)
	for step := 0; ; step++ {
		at := now()
		trusted := ctx.Err() == nil && x.Err() == nil
		if trusted {
			last = at
		}
		if trusted && at-noted > int64(25*time.Millisecond) {
			noted = at
			valid := at + int64(time.Until(x.ValidUntil()))
			w.note(t, Event{Kind: Believed, Last: at, Until: valid})
		}
		if !trusted && !t.deaf {
			return last
		}
		if step%8 == 0 {
			w.put(x, t)
		}
		if now() >= until || w.stop.Err() != nil {
			if t.deaf { // the write that comes late
				w.put(x, t)
			}
			return last
		}
		time.Sleep(3 * time.Millisecond)
	}
}

// put writes to the store, whatever the lease says by now. Those who share a name do not
// write, nor do those who have no fence or somebody else's.
func (w *worker) put(x Lease, t *turn) {
	if t.mode != Alone {
		return
	}
	for _, name := range t.names {
		body, _ := json.Marshal(write{w.Life, name, t.part(name), x.FenceOf(name)}) // of plain fields
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+w.Store, bytes.NewReader(body))
		if err != nil {
			panic(err) // the address is the run's
		}
		if resp, err := w.http.Do(req); err == nil { // else the write is lost, as writes are
			_ = resp.Body.Close()
		}
	}
}

func (w *worker) release(x Lease, t *turn, last int64) {
	end := x.Release
	if t.complete {
		end = x.Complete
	}
	_ = w.finish(t, Event{Last: last, Complete: t.complete}, end) // it is noted
}

// finish notes how a lease ends.
func (w *worker) finish(t *turn, e Event, end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	deadline := now() + int64(5*time.Second)
	if t.gone {
		cancel()
		deadline = now()
	}
	e.Kind, e.Deadline = Releasing, deadline
	w.note(t, e)
	err := end(ctx)
	w.note(t, Event{Kind: Released, Class: class(err), Error: text(err)})
	return err
}
