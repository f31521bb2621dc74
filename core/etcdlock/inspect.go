package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// page is how many keys one request of a walk reads.
const page = 500

// Inspect implements inspect.Inspector. It costs a read, and a question about the lease of the lock, or of each of
// several holders.
//
// etcd keeps no times. So HeldFor and Waited are not known, and Remaining is in whole seconds. An entry is there, and counts
// as alive, for up to a second after its life has ended.
func (s *Store) Inspect(ctx context.Context, name string) (info inspect.LeaseInfo, err error) {
	info.Name = name
	if err := s.reach(ctx); err != nil {
		return info, err
	}
	answer, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(s.lockKey(name)),
		clientv3.OpGet(s.heldPrefix(name), clientv3.WithPrefix()),
		clientv3.OpGet(s.queuePrefix(name), clientv3.WithPrefix(), clientv3.WithLimit(inspect.MaxLine),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)),
	).Commit()
	if err != nil {
		return info, err
	}
	for _, entry := range answer.Responses[2].GetResponseRange().GetKvs() {
		info.Line = append(info.Line, inspect.WaiterInfo{Label: string(entry.Value), Alive: true})
	}
	var now state
	now.locked(driver.Claim{}, single(answer.Responses[0]), answer.Responses[1].GetResponseRange().GetKvs())
	err = s.describeHolders(ctx, &info, now)
	return info, err
}

var kinds = map[string]inspect.HoldKind{
	owned: inspect.HoldExclusive, shared: inspect.HoldShared, limited: inspect.HoldLimited,
	kept: inspect.HoldKept, handoff: inspect.HoldHandoff,
}

// describeHolders adds what is known of those who have the name.
func (s *Store) describeHolders(ctx context.Context, info *inspect.LeaseInfo, now state) error {
	var keys []*mvccpb.KeyValue
	for _, h := range now.holders {
		keys = append(keys, h.key)
	}
	if now.lock != nil {
		keys = []*mvccpb.KeyValue{now.lock}
	}
	holders, err := describe(keys, func(key *mvccpb.KeyValue) (inspect.HolderInfo, bool, error) {
		left, there, err := s.left(ctx, key)
		says := read(key.Value)
		limit, _ := strconv.Atoi(says.form)
		return inspect.HolderInfo{Label: says.label, Handle: handle(says.id), Remaining: left, Limit: limit}, there, err
	})
	if err != nil || len(holders) == 0 {
		return err
	}
	slices.SortStableFunc(holders, func(a, b inspect.HolderInfo) int { return cmp.Compare(b.Remaining, a.Remaining) })
	info.Held, info.Remaining, info.Kind, info.Kept = true, holders[0].Remaining, kinds[now.is.form], now.is.left()
	switch now.is.form {
	case shared, limited:
		info.Holders = holders[:min(len(holders), inspect.MaxLine)]
		info.Limit = now.fewer(driver.Claim{Limit: math.MaxInt})
		return nil
	case owned:
		info.Fence = uint64(now.lock.ModRevision) //nolint:gosec // G115: revisions count up from 1
	case kept, handoff:
	default:
		info.Foreign, info.Kind = true, inspect.HoldForeign
		return nil
	}
	info.Label, info.Handle = holders[0].Label, holders[0].Handle
	return nil
}

// left is what is left of the lease that keeps a key, 0 if it needs none. A key whose lease has ended is
// about to go.
func (s *Store) left(ctx context.Context, key *mvccpb.KeyValue) (left time.Duration, there bool, err error) {
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

// Leases implements inspect.Inspector. It reads the keys below the prefix, 500 at a time, those of the queues,
// of markers and of several holders too, and then asks for each name as Inspect does.
func (s *Store) Leases(ctx context.Context, prefix string) iter.Seq2[inspect.LeaseInfo, error] {
	held := func(key *mvccpb.KeyValue) (id string) {
		name, below := s.split(key)
		if below == "" || strings.HasPrefix(below, "held/") {
			return name
		}
		return ""
	}
	return walk(ctx, s, prefix, held, func(key *mvccpb.KeyValue) (inspect.LeaseInfo, bool, error) {
		name, _ := s.split(key)
		info, err := s.Inspect(ctx, name)
		return info, info.Held, err
	}, clientv3.WithKeysOnly())
}

// split returns the name that a key belongs to, and what it is there; "" if it is the lock.
func (s *Store) split(key *mvccpb.KeyValue) (name, below string) {
	name, below, _ = strings.Cut(strings.TrimPrefix(string(key.Key), s.prefix), "\x00")
	return name, below
}

// Markers implements inspect.MarkerInspector. It reads the keys below the prefix, 500 at a time, and asks for
// the lease of each marker.
func (s *Store) Markers(ctx context.Context, prefix string) iter.Seq2[inspect.MarkerInfo, error] {
	marks := func(key *mvccpb.KeyValue) (id string) {
		if _, below := s.split(key); strings.HasPrefix(below, "done/") {
			return string(key.Key)
		}
		return ""
	}
	return walk(ctx, s, prefix, marks, func(key *mvccpb.KeyValue) (inspect.MarkerInfo, bool, error) {
		name, below := s.split(key)
		left, there, err := s.left(ctx, key)
		return inspect.MarkerInfo{Name: name, Scope: strings.TrimPrefix(below, "done/"), Label: string(key.Value), Remaining: left}, there, err
	})
}

// walk goes through the keys of all names that begin with prefix, and yields what of makes of those that have an id, one for
// each.
func walk[T any](ctx context.Context, s *Store, prefix string, id func(*mvccpb.KeyValue) string,
	of func(*mvccpb.KeyValue) (T, bool, error), opts ...clientv3.OpOption,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		from := s.prefix + prefix
		opts := append(slices.Clip(opts), clientv3.WithRange(clientv3.GetPrefixRangeEnd(from)), clientv3.WithLimit(page))
		if from == "" {
			from = "\x00" // the first key that there can be
		}
		for more := true; more; {
			answer, err := s.client.Get(ctx, from, opts...)
			var found []T
			if err == nil {
				if more = answer.More; more {
					from = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
				}
				keys := slices.DeleteFunc(answer.Kvs, func(key *mvccpb.KeyValue) bool { return id(key) == "" })
				found, err = describe(slices.CompactFunc(keys, func(a, b *mvccpb.KeyValue) bool { return id(a) == id(b) }), of)
			}
			for _, one := range found {
				if !yield(one, nil) {
					return
				}
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
		}
	}
}

const questions = 16 // about leases, at the same time

// describe calls of for several keys at the same time, and returns what is there, in their order. With an error it is not all.
func describe[T any](keys []*mvccpb.KeyValue, of func(*mvccpb.KeyValue) (T, bool, error)) (found []T, err error) {
	values, there, errs := make([]T, len(keys)), make([]bool, len(keys)), make([]error, len(keys))
	var all sync.WaitGroup
	turns := make(chan struct{}, questions)
	for i, key := range keys {
		turns <- struct{}{}
		all.Go(func() {
			values[i], there[i], errs[i] = of(key)
			<-turns
		})
	}
	all.Wait()
	for i, value := range values {
		if there[i] && errs[i] == nil {
			found = append(found, value)
		}
	}
	return found, errors.Join(errs...)
}

// Evict implements inspect.Inspector.
func (s *Store) Evict(ctx context.Context, name, of string) error {
	c := driver.Claim{Name: name}
	for {
		now, err := s.read(ctx, c)
		if err != nil {
			return err
		}
		if now.lock == nil && len(now.holders) == 0 {
			return driver.ErrNotOwner
		}
		if now.is.left() {
			now.holders = []holder{{record: now.is, key: now.lock}}
		}
		i := slices.IndexFunc(now.holders, func(h holder) bool { return of != "" && of == handle(h.id) })
		if i < 0 {
			return &driver.Held{Label: now.is.label, Remaining: now.frees(c)}
		}
		if err = s.free(ctx, c, now.holders[i].key); !errors.Is(err, driver.ErrNotOwner) {
			return err
		} // it has ended by itself, and somebody else may have the name
	}
}

// Unmark implements inspect.MarkerInspector.
func (s *Store) Unmark(ctx context.Context, name, scope string) error {
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
