package etcdlock

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Wait implements driver.Queuer.
func (s *store) Wait(ctx context.Context, c driver.Claim) error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return err
	}
	place := s.placeKey(c.Name, c.At())
	w := s.watches.take(place)
	defer func() {
		if ctx.Err() == nil {
			w.end()
		} else { // the next call goes on
			s.watches.keep(place, w, driver.PlaceLife(c.TTL))
		}
	}()
	for {
		key, since, err := s.lineUp(ctx, c)
		if key == "" || err != nil {
			return err
		}
		if w.key != key {
			earlier := w
			w = s.watch(ctx, key, since, c)
			earlier.end() // after that: with its last watch, the client ends its stream
		}
		w.listen(ctx, driver.Recheck(c.TTL))
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// lineUp stands in line, and says whose end to wait for, and since which revision: that of
// the place before it, or of the lock if it is the first. No key means that it is its turn.
func (s *store) lineUp(ctx context.Context, c driver.Claim) (key string, since int64, err error) {
	now, err := s.look(ctx, c)
	if err != nil { // never ctx's error as it is: the place may not be there
		return "", 0, fmt.Errorf("etcdlock: to look at the queue: %w", err)
	}
	for err == nil && now.own == nil && !now.owned(c) {
		if err = s.stand(ctx, c); err == nil {
			now, err = s.look(ctx, c)
			err = driver.UnknownOutcome(err) // the place stands, whatever became of the look
		}
	}
	if err != nil || now.owned(c) {
		return "", 0, err
	}
	if err := s.prolong(ctx, now.own.Lease); err != nil {
		return "", 0, err
	}
	if err := s.relabel(ctx, now.own, c); err != nil {
		return "", 0, err
	}
	switch {
	case now.admits(c) && now.heads():
		return "", 0, nil
	case now.heads():
		return s.lockKey(c.Name), now.revision, nil
	}
	before, err := s.client.Get(ctx, s.linePrefix(c.Name),
		append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(now.own.CreateRevision-1))...)
	if err != nil {
		return "", 0, err
	}
	if len(before.Kvs) == 0 { // it has gone by now: the lock's end is next
		return s.lockKey(c.Name), now.revision, nil
	}
	return string(before.Kvs[0].Key), before.Header.Revision, nil
}

// stand goes to the end of the line, for as long as the place's lease is prolonged.
func (s *store) stand(ctx context.Context, c driver.Claim) error {
	lease, err := s.lease(ctx, driver.PlaceLife(c.TTL))
	if err != nil {
		return err
	}
	place := s.placeKey(c.Name, c.At())
	step := clientv3.OpPut(place, c.Label, clientv3.WithLease(lease))
	answer, err := s.txn(ctx, c.Name, []clientv3.Cmp{unchanged(place, nil)}, []clientv3.Op{step}, nil)
	s.doubt(ctx, c.At(), c.TTL, err, leases{own: lease})
	switch {
	case err != nil: // never ctx's error as it is: it may be executed yet
		return fmt.Errorf("etcdlock: to line up: %w", err)
	case !answer.Succeeded:
		s.drop(ctx, lease)
	}
	return nil
}

// relabel says on a place who waits there now: another caller of the same process, perhaps.
func (s *store) relabel(ctx context.Context, own *mvccpb.KeyValue, c driver.Claim) error {
	if string(own.Value) == c.Label {
		return nil
	}
	place := string(own.Key)
	_, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(place), "=", own.CreateRevision)).
		Then(clientv3.OpPut(place, c.Label, clientv3.WithIgnoreLease())).
		Commit()
	if err != nil {
		return fmt.Errorf("etcdlock: to label a place: %w", err)
	}
	return nil
}

// watch is what a waiter hears of one key. It stays from one look to the next, and from one call of Wait to the next.
type watch struct {
	key    string // "" if there is no watch
	heard  clientv3.WatchChan
	cancel context.CancelFunc
}

// watch tells when key is deleted. With a lock go its holders, if there may be several, and changes:
// its owner may let readers in.
func (s *store) watch(ctx context.Context, key string, since int64, c driver.Claim) watch {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(context.WithoutCancel(ctx)))
	opts := []clientv3.OpOption{clientv3.WithRev(since + 1)}
	if key == s.lockKey(c.Name) {
		opts = append(opts, clientv3.WithRange(clientv3.GetPrefixRangeEnd(s.heldPrefix(c.Name))))
	} else {
		opts = append(opts, clientv3.WithFilterPut())
	}
	return watch{key, s.client.Watch(ctx, key, opts...), cancel}
}

func (w *watch) end() {
	if w.cancel != nil {
		w.cancel()
	}
	*w = watch{}
}

// listen returns when the key is deleted, or may have been, and after a while, since the place wants to be heard of, and may
// have been lost.
func (w *watch) listen(ctx context.Context, while time.Duration) {
	timer := time.NewTimer(while)
	defer timer.Stop()
	for {
		select {
		case heard, ok := <-w.heard:
			if !ok || heard.Err() != nil { // the next watch may fail in the same way
				w.end()
				pause(ctx)
				return
			}
			if len(heard.Events) > 0 {
				return
			}
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// pause is between a watch that has failed and the next look.
func pause(ctx context.Context) {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
