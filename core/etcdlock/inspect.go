package etcdlock

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// page is how many keys one request of a walk reads.
const page = 500

// Inspect implements driver.Inspector. It costs a read, and a question about the lease of the lock, of each of
// several holders, and of each place in the queue.
//
// etcd keeps no times. So HeldFor and Waited are not known, and Remaining is in whole seconds. A place whose
// lease has less than a second left counts as not alive.
func (s *store) Inspect(ctx context.Context, name string) (info driver.LeaseInfo, err error) {
	info.Name = name
	if err := s.reach(ctx); err != nil {
		return info, err
	}
	answer, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(s.lockKey(name)),
		clientv3.OpGet(s.heldPrefix(name), clientv3.WithPrefix()),
		clientv3.OpGet(s.linePrefix(name), clientv3.WithPrefix(), clientv3.WithLimit(driver.MaxLine),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)),
	).Commit()
	if err != nil {
		return info, err
	}
	info.Line, err = describeAll(answer.Responses[2].GetResponseRange().GetKvs(), func(place *mvccpb.KeyValue) (driver.WaiterInfo, bool, error) {
		left, err := s.client.TimeToLive(ctx, clientv3.LeaseID(place.Lease))
		return driver.WaiterInfo{Label: string(place.Value), Alive: err == nil && left.TTL > 0}, true, err
	})
	var now state
	now.locked(single(answer, 0), answer.Responses[1].GetResponseRange().GetKvs())
	switch {
	case err != nil || now.lock == nil || now.deserted():
	case now.is.several():
		err = s.describeSeveral(ctx, &info, now)
	default:
		err = s.describe(ctx, &info, now)
	}
	return info, err
}

// describe adds what is known of a lock that has no holders with keys of their own.
func (s *store) describe(ctx context.Context, info *driver.LeaseInfo, now state) error {
	left, there, err := s.left(ctx, now.lock)
	if err != nil || !there {
		return err
	}
	info.Held, info.Remaining = true, left
	if !now.is.ours() {
		info.Foreign, info.Kind = true, driver.HoldForeign
		return nil
	}
	info.Label, info.Handle = now.is.label, handle(now.is.id)
	switch now.is.form {
	case kept:
		info.Kind, info.Kept = driver.HoldKept, true
	case handoff:
		info.Kind, info.Kept = driver.HoldHandoff, true
	default:
		info.Kind = driver.HoldExclusive
		info.Fence = uint64(now.lock.ModRevision) //nolint:gosec // G115: revisions count up from 1
	}
	return nil
}

// describeSeveral adds what is known of holders that have a lock together.
func (s *store) describeSeveral(ctx context.Context, info *driver.LeaseInfo, now state) (err error) {
	keys := make([]*mvccpb.KeyValue, len(now.holders))
	for i, h := range now.holders {
		keys[i] = h.key
	}
	info.Holders, err = describeAll(keys, func(key *mvccpb.KeyValue) (driver.HolderInfo, bool, error) {
		left, there, err := s.left(ctx, key)
		says := read(key.Value)
		limit, _ := strconv.Atoi(says.form)
		return driver.HolderInfo{Label: says.label, Handle: handle(says.id), Remaining: left, Limit: limit}, there, err
	})
	if err != nil || len(info.Holders) == 0 {
		return err
	}
	slices.SortStableFunc(info.Holders, func(a, b driver.HolderInfo) int { return cmp.Compare(b.Remaining, a.Remaining) })
	info.Held, info.Remaining = true, info.Holders[0].Remaining
	if now.is.form == shared {
		info.Kind, info.Fence = driver.HoldShared, now.fence()
	} else {
		info.Kind, info.Limit = driver.HoldLimited, now.allows(driver.Claim{Limit: math.MaxInt})
	}
	info.Holders = info.Holders[:min(len(info.Holders), driver.MaxLine)]
	return nil
}

// left is what is left of the lease that keeps a key, 0 if it needs none. A key whose lease has ended is
// about to go.
func (s *store) left(ctx context.Context, key *mvccpb.KeyValue) (left time.Duration, there bool, err error) {
	if key.Lease == 0 {
		return 0, true, nil
	}
	answer, err := s.client.TimeToLive(ctx, clientv3.LeaseID(key.Lease))
	if err != nil || answer.TTL < 0 {
		return 0, false, err
	}
	return time.Duration(max(1, answer.TTL)) * time.Second, true, nil // etcd rounds down
}

// handle is what is shown of an owner's token, by its digest.
func handle(digest string) string { return digest[:min(len(digest), 16)] }

// Leases implements driver.Inspector. It reads the keys below the prefix, 500 at a time, those of places,
// of markers and of several holders too, and then asks for each name as Inspect does.
func (s *store) Leases(ctx context.Context, prefix string) iter.Seq2[driver.LeaseInfo, error] {
	return walk(ctx, s, prefix, []clientv3.OpOption{clientv3.WithKeysOnly()}, func(key *mvccpb.KeyValue) (driver.LeaseInfo, bool, error) {
		name := strings.TrimPrefix(string(key.Key), s.prefix)
		if strings.Contains(name, "\x00") { // a place, a marker, or one of several holders
			return driver.LeaseInfo{}, false, nil
		}
		info, err := s.Inspect(ctx, name)
		return info, info.Held, err
	})
}

// Markers implements driver.MarkerInspector. It reads the keys below the prefix, 500 at a time, and asks for
// the lease of each marker.
func (s *store) Markers(ctx context.Context, prefix string) iter.Seq2[driver.MarkerInfo, error] {
	return walk(ctx, s, prefix, nil, func(key *mvccpb.KeyValue) (driver.MarkerInfo, bool, error) {
		name, scope, ok := strings.Cut(strings.TrimPrefix(string(key.Key), s.prefix), "\x00done/")
		if !ok {
			return driver.MarkerInfo{}, false, nil
		}
		left, there, err := s.left(ctx, key)
		return driver.MarkerInfo{Name: name, Scope: scope, Label: string(key.Value), Remaining: left}, there, err
	})
}

// walk goes through all keys of names that begin with prefix, and yields what describe makes of them.
func walk[T any](ctx context.Context, s *store, prefix string, opts []clientv3.OpOption, describe func(*mvccpb.KeyValue) (T, bool, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		from, end := s.prefix+prefix, clientv3.GetPrefixRangeEnd(s.prefix+prefix)
		if from == "" {
			from = "\x00" // the first key that there can be
		}
		for {
			answer, err := s.client.Get(ctx, from, append([]clientv3.OpOption{clientv3.WithRange(end), clientv3.WithLimit(page)}, opts...)...)
			if err != nil {
				yield(none, err)
				return
			}
			found, err := describeAll(answer.Kvs, describe)
			for _, one := range found {
				if !yield(one, nil) {
					return
				}
			}
			if err != nil {
				yield(none, err)
				return
			}
			if !answer.More {
				return
			}
			from = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
		}
	}
}

const questions = 16 // about leases, at the same time

// describeAll describes several keys at the same time.
func describeAll[T any](keys []*mvccpb.KeyValue, describe func(*mvccpb.KeyValue) (T, bool, error)) (found []T, err error) {
	type result struct {
		value T
		there bool
		err   error
	}
	results := make([]result, len(keys))
	var all sync.WaitGroup
	turns := make(chan struct{}, questions)
	for i, key := range keys {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			r := &results[i]
			r.value, r.there, r.err = describe(key)
		})
	}
	all.Wait()
	for _, r := range results {
		if r.err != nil {
			return found, r.err
		}
		if r.there {
			found = append(found, r.value)
		}
	}
	return found, nil
}

// Evict implements driver.Inspector.
func (s *store) Evict(ctx context.Context, name, of string) error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return err
	}
	for {
		c := driver.Claim{Name: name}
		now, err := s.look(ctx, c)
		if err != nil {
			return err
		}
		if now.lock == nil || now.deserted() {
			return driver.ErrNotOwner
		}
		if now.is.several() {
			return s.evictOne(ctx, c, now, of)
		}
		if !now.is.ours() || of != handle(now.is.id) {
			return &driver.Held{Label: now.is.label, Remaining: now.is.ttl}
		}
		done, err := s.client.Txn(ctx).
			If(unchanged(s.lockKey(name), now.lock)).
			Then(clientv3.OpDelete(s.lockKey(name))).
			Commit()
		if err != nil {
			return err
		}
		if done.Succeeded {
			s.drop(ctx, clientv3.LeaseID(now.lock.Lease))
			return nil
		} // it has ended by itself, and somebody else may have the name
	}
}

// evictOne takes the name from one of several holders.
func (s *store) evictOne(ctx context.Context, c driver.Claim, now state, of string) error {
	for _, one := range now.holders {
		if of == handle(one.id) {
			return s.part(ctx, c, now, one)
		}
	}
	return &driver.Held{Remaining: now.frees(c)}
}

// Unmark implements driver.MarkerInspector.
func (s *store) Unmark(ctx context.Context, name, scope string) error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return err
	}
	answer, err := s.client.Delete(ctx, s.doneKey(driver.Claim{Name: name, Scope: scope}), clientv3.WithPrevKV())
	if err != nil {
		return err
	}
	if len(answer.PrevKvs) == 0 {
		return driver.ErrNotOwner
	}
	s.drop(ctx, clientv3.LeaseID(answer.PrevKvs[0].Lease))
	return nil
}
