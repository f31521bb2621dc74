package zklock

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/url"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// Inspect implements inspect.Inspector. It costs one read for the queue, and one for each znode in it.
//
// The server says when a znode was made or written, and not what time it is. So HeldFor and Waited compare
// its clock with that of this machine, and are wrong by as much as these differ. Remaining is the holder's
// TTL: the server does not say what is left of a session. An entry that is there is alive, since it goes with
// its session.
func (s *Store) Inspect(ctx context.Context, name string) (inspect.LeaseInfo, error) {
	return run(ctx, s, &s.left, func(t *call) (inspect.LeaseInfo, error) { return t.inspect(name) })
}

func (t *call) inspect(name string) (inspect.LeaseInfo, error) {
	info := inspect.LeaseInfo{Name: name}
	now := time.Now() // one for all: the reads take time
	queue, err := t.queue(name)
	if err != nil {
		return info, err
	}
	holders := len(owners(queue))
	for i, znode := range queue {
		if len(info.Line) == inspect.MaxLine {
			break
		}
		if i < holders && len(info.Holders) == inspect.MaxLine {
			continue
		}
		data, stat, err := t.get(t.dir(name) + "/" + znode)
		if err != nil {
			return info, err
		}
		if stat != nil {
			add(&info, now, znode, data, stat, i < holders)
		}
	}
	if len(info.Holders) > 1 {
		info.Fence = 0 // each has its own
	}
	return info, nil
}

// add adds a znode to what is known of its name at now. first says that nobody of another kind is before it.
func add(info *inspect.LeaseInfo, now time.Time, znode string, data []byte, stat *zk.Stat, first bool) {
	token, held := owner(znode, data)
	heldFor, n := since(now, stat.Mtime), limit(znode)
	switch {
	case first && isLeft(znode):
		if held.Remaining > heldFor { // else it waits for somebody to delete it
			info.Held, info.Kept, info.Kind, info.HeldFor = true, true, inspect.HoldHandoff, heldFor
			info.Label, info.Handle, info.Remaining = held.Label, handle(token), held.Remaining-heldFor
		}
		return
	case first && !ours(znode):
		info.Held, info.Foreign, info.Kind, info.HeldFor = true, true, inspect.HoldForeign, since(now, stat.Ctime)
		return
	case token == "":
		info.Line = append(info.Line, inspect.WaiterInfo{Label: waiting(data), Waited: since(now, stat.Ctime), Alive: true})
		return
	case !first: // it asked for a name that looked free, and is about to leave
		return
	}
	info.Held, info.Kind, info.Fence = true, inspect.HoldExclusive, uint64(stat.Mzxid) //nolint:gosec // G115: grant has checked it
	info.Remaining, info.HeldFor = max(info.Remaining, held.Remaining), max(info.HeldFor, heldFor)
	if !together(znode, znode) {
		info.Label, info.Handle = held.Label, handle(token)
		return
	}
	info.Kind = inspect.HoldShared
	if n > 0 {
		info.Kind, info.Limit, info.Fence = inspect.HoldLimited, min(n, cmp.Or(info.Limit, n)), 0
	}
	info.Holders = append(info.Holders, inspect.HolderInfo{
		Label: held.Label, Handle: handle(token), Remaining: held.Remaining, HeldFor: heldFor, Limit: n,
	})
}

// ours says whether a znode is that of a client of this library.
func ours(znode string) bool {
	return together(znode, znode) || strings.HasPrefix(znode, exclusive) || strings.HasPrefix(znode, taken) || isLeft(znode)
}

// since is how long before now a time of the server was.
func since(now time.Time, ms int64) time.Duration { return max(0, now.Sub(time.UnixMilli(ms))) }

// handle is what is shown of an owner's token, by its digest.
func handle(digest string) string { return digest[:min(len(digest), 16)] }

// Leases implements inspect.Inspector. It reads the names below the root, which has all that are in use or
// were a short while ago, and then asks for each as Inspect does.
func (s *Store) Leases(ctx context.Context, prefix string) iter.Seq2[inspect.LeaseInfo, error] {
	return func(yield func(inspect.LeaseInfo, error) bool) {
		names, err := run(ctx, s, &s.left, func(t *call) ([]string, error) { return t.names(prefix) })
		for i := 0; err == nil && i < len(names); i++ {
			var info inspect.LeaseInfo
			if info, err = s.Inspect(ctx, names[i]); err == nil && info.Held && !yield(info, nil) {
				return
			}
		}
		if err != nil {
			yield(inspect.LeaseInfo{}, err)
		}
	}
}

func (t *call) names(prefix string) (names []string, err error) {
	parts, _, err := t.children(t.root)
	for _, part := range parts {
		name, err := url.PathUnescape(part)
		if err == nil && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names, err
}

// Evict implements inspect.Inspector.
func (s *Store) Evict(ctx context.Context, name, of string) error {
	_, err := run(ctx, s, &s.left, func(t *call) (struct{}, error) { return struct{}{}, t.evict(name, of) })
	return err
}

func (t *call) evict(name, of string) error {
	queue, err := t.queue(name)
	if err != nil {
		return err
	}
	result := driver.ErrNotOwner
	for _, znode := range owners(queue) {
		path := t.dir(name) + "/" + znode
		data, stat, err := t.get(path)
		if err != nil {
			return err
		}
		token, held := owner(znode, data)
		switch {
		case stat == nil, token == "" && ours(znode): // it has gone, or was not granted the name yet
			continue
		case token == "" || of != handle(token):
			result = &held
			continue
		}
		err = t.end(name, znode, stat.Version)
		if errors.Is(err, zk.ErrNoNode) {
			return driver.ErrNotOwner
		}
		return err
	}
	return result
}
