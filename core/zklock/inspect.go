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

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Inspect implements driver.Inspector. It costs one read for the queue, and one for each znode in it.
//
// The server says when a znode was made or written, and not what time it is. So HeldFor and Waited compare
// its clock with that of this machine, and are wrong by as much as these differ. Remaining is the holder's
// TTL: the server does not say what is left of a session. A place that is there is alive, since it goes with
// its session.
func (s *store) Inspect(ctx context.Context, name string) (driver.LeaseInfo, error) {
	return run(ctx, s, func(t *trip) (driver.LeaseInfo, error) { return t.inspect(name) })
}

func (t *trip) inspect(name string) (driver.LeaseInfo, error) {
	info := driver.LeaseInfo{Name: name}
	now := time.Now() // one for all: the reads take time
	line, err := t.seats(t.dir(name))
	if err != nil {
		return info, err
	}
	holders := len(owners(line))
	for i, seat := range line {
		if len(info.Line) == driver.MaxLine {
			break
		}
		if i < holders && len(info.Holders) == driver.MaxLine {
			continue
		}
		data, stat, err := t.stat(t.dir(name) + "/" + seat)
		if err != nil {
			return info, err
		}
		if stat != nil {
			add(&info, now, seat, data, stat, i < holders)
		}
	}
	if len(info.Holders) > 1 {
		info.Fence = 0 // each has its own
	}
	return info, nil
}

// add adds a znode to what is known of its name at now. first says that nobody of another kind is before it.
func add(info *driver.LeaseInfo, now time.Time, seat string, data []byte, stat *zk.Stat, first bool) {
	token, held := owner(data)
	id, handedOff := ownerOf("l1", data)
	heldFor := since(now, stat.Mtime)
	switch {
	case first && isLeft(seat):
		if handedOff.Remaining > heldFor { // else it waits for somebody to delete it
			info.Held, info.Kept, info.Kind, info.HeldFor = true, true, driver.HoldHandoff, heldFor
			info.Label, info.Handle, info.Remaining = handedOff.Label, handle(id), handedOff.Remaining-heldFor
		}
	case first && !ours(seat):
		info.Held, info.Foreign, info.Kind, info.HeldFor = true, true, driver.HoldForeign, since(now, stat.Ctime)
	case first && token != "":
		info.Held, info.Kind, info.Fence = true, driver.HoldExclusive, fence(seat, stat)
		info.Remaining, info.HeldFor = max(info.Remaining, held.Remaining), max(info.HeldFor, heldFor)
		if !together(seat, seat) {
			info.Label, info.Handle = held.Label, handle(token)
			return
		}
		info.Kind = driver.HoldShared
		if n := limit(seat); n > 0 {
			info.Kind, info.Limit = driver.HoldLimited, min(n, cmp.Or(info.Limit, n))
		}
		info.Holders = append(info.Holders, driver.HolderInfo{
			Label: held.Label, Handle: handle(token), Remaining: held.Remaining, HeldFor: heldFor, Limit: limit(seat),
		})
	case token == "": // else it asked for a name that looked free, and is about to leave
		info.Line = append(info.Line, driver.WaiterInfo{Label: waiting(data), Waited: since(now, stat.Ctime), Alive: true})
	}
}

// ours says whether a znode is that of a client of this library.
func ours(seat string) bool {
	return together(seat, seat) || strings.HasPrefix(seat, exclusive) || strings.HasPrefix(seat, taken) || isLeft(seat)
}

// fence is that of the owner at a seat, 0 if it has none.
func fence(seat string, stat *zk.Stat) uint64 {
	if limit(seat) > 0 {
		return 0
	}
	return uint64(stat.Mzxid) //nolint:gosec // G115: granted has checked it
}

// since is how long before now a time of the server was.
func since(now time.Time, ms int64) time.Duration { return max(0, now.Sub(time.UnixMilli(ms))) }

// handle is what is shown of an owner's token, by its digest.
func handle(digest string) string { return digest[:min(len(digest), 16)] }

// stat returns what a znode says, and about itself; nothing if it has gone.
func (t *trip) stat(path string) (data []byte, stat *zk.Stat, err error) {
	err = t.read(func() (err error) { data, stat, err = t.conn.Get(path); return err })
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return data, stat, nil
}

// Leases implements driver.Inspector. It reads the names below the root, which has all that are in use or
// were a short while ago, and then asks for each as Inspect does.
func (s *store) Leases(ctx context.Context, prefix string) iter.Seq2[driver.LeaseInfo, error] {
	return func(yield func(driver.LeaseInfo, error) bool) {
		names, err := run(ctx, s, func(t *trip) ([]string, error) { return t.names(prefix) })
		if err != nil {
			yield(driver.LeaseInfo{}, err)
			return
		}
		for _, name := range names {
			info, err := s.Inspect(ctx, name)
			if err != nil {
				yield(driver.LeaseInfo{}, err)
				return
			}
			if info.Held && !yield(info, nil) {
				return
			}
		}
	}
}

func (t *trip) names(prefix string) (names []string, err error) {
	var parts []string
	err = t.read(func() (err error) { parts, _, err = t.conn.Children(t.root); return err })
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	for _, part := range parts {
		name, err := url.PathUnescape(part)
		if err == nil && strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names, err
}

// Evict implements driver.Inspector.
func (s *store) Evict(ctx context.Context, name, of string) error {
	_, err := run(ctx, s, func(t *trip) (struct{}, error) { return struct{}{}, t.evict(name, of) })
	return err
}

func (t *trip) evict(name, of string) error {
	line, err := t.seats(t.dir(name))
	if err != nil {
		return err
	}
	result := driver.ErrNotOwner
	for _, seat := range owners(line) {
		path := t.dir(name) + "/" + seat
		data, stat, err := t.stat(path)
		if err != nil {
			return err
		}
		token, held := owner(data)
		if isLeft(seat) {
			token, held = ownerOf("l1", data)
		}
		switch {
		case stat == nil, token == "" && ours(seat): // it has gone, or was not granted the name yet
			continue
		case token == "" || of != handle(token):
			result = &held
			continue
		}
		err = t.end(name, seat, stat.Version)
		if errors.Is(err, zk.ErrNoNode) {
			return driver.ErrNotOwner
		}
		return err
	}
	return result
}
