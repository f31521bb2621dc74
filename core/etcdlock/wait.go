package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Wait implements driver.Driver. It looks when the entry before its own is deleted or, if there is none, when the lock
// or its holders change.
func (s *Store) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	w := wait{Store: s, c: c, told: make(chan struct{}, 1)}
	defer w.unwatch()
	return driver.Await(ctx, c, func(ctx context.Context) (driver.Grant, <-chan struct{}, error) {
		g, err := w.look(ctx)
		return g, w.told, explain(err)
	})
}

// wait is one call of Wait.
type wait struct {
	*Store

	c    driver.Claim
	told chan struct{}      // of size one: it is time to look
	over chan struct{}      // closed when the watch has ended; nil if there is none
	end  context.CancelFunc // ends it
}

// look asks for the name and, if that is refused, joins the queue or stays there, and watches.
func (w *wait) look(ctx context.Context) (g driver.Grant, err error) {
	if err := w.reach(ctx); err != nil {
		return g, err
	}
	now, err := w.read(ctx, w.c)
	if err != nil {
		return g, err
	}
	for joined := false; ; joined = true {
		g, now, err = w.ask(ctx, w.c, now)
		if held, ok := errors.AsType[*driver.Held](err); ok {
			var stays bool
			if stays, err = w.queue(ctx, &now); err == nil && !stays {
				continue
			} else if err == nil {
				err = w.watch(ctx, now)
			}
			if err == nil {
				return g, held
			}
		}
		if _, ok := errors.AsType[*driver.Duplicate](err); ok {
			if left := w.leave(ctx, now.own); left != nil {
				err = left
			}
		}
		if joined && errors.Is(err, driver.ErrNotSent) {
			err = driver.UnknownOutcome(err)
		}
		return g, err
	}
}

// queue keeps the entry alive, and says whether it is as it was. Otherwise it has put it at the end of the queue, or changed
// its label, and read the state after that.
func (w *wait) queue(ctx context.Context, now *state) (stays bool, err error) {
	if now.own != nil {
		err := w.prolong(ctx, now.own.Lease)
		switch {
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			now.own = nil
		case err != nil || string(now.own.Value) == w.c.Label:
			return true, err
		}
	}
	lease, keeps := clientv3.NoLease, clientv3.WithIgnoreLease()
	if now.own == nil {
		if lease, err = w.lease(ctx, driver.PlaceLife(w.c.TTL)); err != nil {
			return false, err
		}
		keeps = clientv3.WithLease(lease)
	}
	key, parts := w.entryKey(w.c), w.parts(w.c)
	answer, err := w.txn(ctx, w.c.Name, []clientv3.Cmp{unchanged(key, now.own)},
		append([]clientv3.Op{clientv3.OpPut(key, w.c.Label, keeps)}, parts...), parts)
	if err != nil {
		w.doubt(ctx, w.c, err, lease)
		return false, fmt.Errorf("etcdlock: to join the queue: %w", err)
	}
	if !answer.Succeeded {
		w.drop(ctx, lease)
	}
	*now = w.stateOf(w.c, answer)
	w.unwatch()
	return false, nil
}

// before says whose end the first look of a waiter waits for, and since which revision. No key means to look at once.
func (s *Store) before(ctx context.Context, c driver.Claim, now state) (key string, since int64, err error) {
	if now.heads() {
		return s.lockKey(c.Name), now.revision, nil
	}
	answer, err := s.client.Get(ctx, s.queuePrefix(c.Name),
		append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(now.own.CreateRevision-1))...)
	if err != nil || len(answer.Kvs) == 0 {
		return "", 0, err
	}
	return string(answer.Kvs[0].Key), answer.Header.Revision, nil
}

// watch has the wait told when what is before c goes, unless that is watched already. With a lock go its holders, if
// there may be several, and changes: its owner may let readers in.
//
// It watches from now on, and looks again if something may have happened since the state was read: what etcd should tell from an
// earlier revision on, it tells only every 100 ms.
func (w *wait) watch(ctx context.Context, now state) error {
	select {
	case <-w.over:
	default:
		if w.over != nil {
			return nil
		}
	}
	w.unwatch()
	key, since, err := w.before(ctx, w.c, now)
	if key == "" {
		w.tell()
		return err
	}
	opts := []clientv3.OpOption{clientv3.WithCreatedNotify()}
	if key == w.lockKey(w.c.Name) {
		opts = append(opts, clientv3.WithRange(clientv3.GetPrefixRangeEnd(w.heldPrefix(w.c.Name))))
	}
	st := w.keepAlives.stream(w.client)
	all := st.watching(w.client, w.prefix+"\x00")
	ctx, w.end = context.WithCancel(all.ctx) //nolint:contextcheck // metadata of a caller would cost another stream
	over := make(chan struct{})
	w.over = over
	go func() {
		defer close(over)
		defer w.tell()
		heard := w.client.Watch(ctx, key, opts...)
		for {
			select {
			case answer, ok := <-heard:
				switch {
				case !ok || answer.Err() != nil: // the next watch may fail in the same way
					st.refused(all)
					pause(ctx)
					return
				case len(answer.Events) > 0:
					return
				case answer.Header.Revision > since:
					w.tell()
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

func (w *wait) tell() {
	select {
	case w.told <- struct{}{}:
	default:
	}
}

func (w *wait) unwatch() {
	if w.over != nil {
		w.end()
		<-w.over
		w.over = nil
	}
}

// pause is between a watch or a stream that has failed and the next one.
func pause(ctx context.Context) {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
