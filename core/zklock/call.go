package zklock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
)

// call is one operation. The client's requests know no contexts, so an operation runs on a
// goroutine of its own, which its caller may leave behind. It then ends with the request
// that is under way.
type call struct {
	*Store
	ctx     context.Context
	wrote   bool  // a request was sent that may have changed something
	changed int64 // zxid since which nobody has come to, or left, the queue that was read last
}

// abandoned counts operations under way whose callers have left. Each of them has a request in the client's queue until the
// client gives up a connection that is silent, after two thirds of the session's time-out.
type abandoned struct{ atomic.Int64 }

// mostAbandoned is how many there may be. Whoever comes then is told that nobody answers.
const mostAbandoned = 1000

var errSilent = errors.New("zklock: the server has not answered what it was asked before on this connection")

func (a *abandoned) tooMany() error {
	if a.Load() < mostAbandoned {
		return nil
	}
	return driver.NotSent(driver.Unavailable(errSilent))
}

// run runs an operation, and returns by the end of ctx.
func run[T any](ctx context.Context, s *Store, left *abandoned, op func(*call) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	var none T
	if err := driver.NotSent(ctx.Err()); err != nil {
		return none, err
	}
	done := make(chan outcome, 1)
	var first atomic.Bool // one of the two has gone
	go func() {
		value, err := op(&call{Store: s, ctx: ctx})
		done <- outcome{value, err}
		if first.Swap(true) {
			left.Add(-1)
		}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		left.Add(1)
		if first.Swap(true) {
			left.Add(-1)
		}
		return none, ctx.Err()
	}
}

// poll is how often the connection's state is read while there is no session. That costs no request.
const poll = 5 * time.Millisecond

// begin waits until there is a session, so that no request outlives its caller in the
// client's queue. While the client is disconnected nothing is granted and nothing confirmed.
func (t *call) begin() error {
	for !t.connected() && t.ctx.Err() == nil {
		select {
		case <-time.After(poll):
		case <-t.ctx.Done():
		}
	}
	return t.unsent(t.ctx.Err())
}

func (s *Store) connected() bool { return s.conn.State() == zk.StateHasSession }

// unsent marks an error after which the server has certainly not executed anything.
func (t *call) unsent(err error) error {
	if t.wrote {
		return err
	}
	return driver.NotSent(err)
}

// read sends a request that changes nothing.
func (t *call) read(request func() error) error {
	if err := t.begin(); err != nil {
		return err
	}
	err := request()
	if unknown(err) {
		return err
	}
	return t.unsent(explain(err))
}

// write sends a request that changes something.
func (t *call) write(request func() error) error {
	return t.read(func() error {
		err := request()
		if err == nil || unknown(err) {
			t.wrote = true
		}
		return err
	})
}

// get returns what a znode says, and about itself; nothing if it has gone.
func (t *call) get(path string) (data []byte, stat *zk.Stat, err error) {
	err = t.read(func() (err error) { data, stat, err = t.conn.Get(path); return err })
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil, nil
	}
	return data, stat, err
}

const adviceForbidden = "the connection may not do this: its user (zk.Conn.AddAuth) needs read, write, create and delete on the root of the locks and below"

// explain adds to an answer what to do about it.
func explain(err error) error {
	if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrAuthFailed) {
		return driver.Refused(driver.Because(err, adviceForbidden))
	}
	return err
}

// refusals are the answers that say that a request was not executed.
var refusals = []error{
	zk.ErrNoServer, // the client's own: it never had a connection to send it on
	zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNotEmpty, zk.ErrInvalidACL,
	zk.ErrNoChildrenForEphemerals, zk.ErrAuthFailed, zk.ErrBadArguments, zk.ErrSessionMoved, zk.ErrInvalidPath,
}

// unknown says whether err leaves open what the server did.
func unknown(err error) bool {
	if err == nil {
		return false
	}
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return false
		}
	}
	return true
}
