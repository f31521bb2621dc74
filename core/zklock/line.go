package zklock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
)

// exclusive begins the names of znodes that want a name for themselves.
const exclusive = "write-"

// digest stands for a token or a place, which are secrets, where others can read it.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:16])
}

// dir is the znode whose children stand in line for name.
func (s *Store) dir(name string) string {
	part := url.PathEscape(name)
	if strings.Trim(part, ".") == "" { // a relative path to ZooKeeper
		part = strings.ReplaceAll(part, ".", "%2E")
	}
	return s.root + "/" + part
}

// makeDir makes a name's parent, as a container: the server deletes it some time after its
// last child has gone.
func (t *trip) makeDir(name string) error {
	err := t.make(t.dir(name), zk.FlagContainer)
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	for i, r := range t.root + "/" {
		if r == '/' && i > 0 {
			if err := t.make(t.root[:i], zk.FlagPersistent); err != nil {
				return err
			}
		}
	}
	return t.make(t.dir(name), zk.FlagContainer)
}

// make creates a znode, unless it is there. That grants nothing to anybody.
func (t *trip) make(path string, flag int32) error {
	err := t.read(func() error {
		create := t.conn.Create
		if flag == zk.FlagContainer {
			create = t.conn.CreateContainer
		}
		_, err := create(path, nil, flag, t.acl)
		return err
	})
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// seats returns the children of dir in the order in which they were created.
func (t *trip) seats(dir string) (seats []string, err error) {
	err = t.read(func() error { seats, _, err = t.conn.Children(dir); return err })
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	slices.SortFunc(seats, before)
	return seats, err
}

// before orders seats by the number that the server gave them. It is 32 bits wide and
// wraps around. What has no number is not ours, and nobody can say when it came: it comes
// first, so that nobody is before it.
func before(a, b string) int {
	m, errA := number(a)
	n, errB := number(b)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(m-n, 0)
	case errA != nil && errB != nil:
		return cmp.Compare(a, b)
	case errA != nil:
		return -1
	default:
		return 1
	}
}

func number(seat string) (int32, error) {
	const digits = 10
	at := max(0, len(seat)-digits)
	if at > 1 && seat[at-1] == '-' && seat[at-2] == '-' { // the second one is a sign
		at--
	}
	n, err := strconv.ParseInt(seat[at:], 10, 32)
	return int32(n), err
}

// Wait implements driver.Queuer.
func (s *Store) Wait(ctx context.Context, c driver.Claim) error {
	for {
		gone, err := run(ctx, s, func(t *trip) (<-chan zk.Event, error) { return t.lineUp(c) })
		if gone == nil || err != nil {
			return err
		}
		timer := time.NewTimer(driver.Recheck(c.TTL))
		select {
		case <-gone:
		case <-timer.C: // our place wants to be heard of
		case <-ctx.Done():
		}
		timer.Stop()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// lineUp stands in line at c's place. No channel means that it is that place's turn; else it
// tells when the one before has gone, or has been granted the name.
func (t *trip) lineUp(c driver.Claim) (<-chan zk.Event, error) {
	n, err := t.take(c.Name, digest(c.Token), digest(c.At()))
	if err != nil {
		return nil, err
	}
	defer t.leave(n)
	for {
		line, err := t.line(n)
		if err != nil {
			return nil, err
		}
		if !n.owned {
			t.keep(n, driver.PlaceLife(c.TTL))
		}
		at := slices.Index(line, n.seat)
		if at == 0 {
			return nil, nil //nolint:nilnil // documented
		}
		if at < 0 {
			if err := t.create(n, nil); err != nil {
				return nil, err
			}
			continue
		}
		gone, err := t.watch(t.dir(c.Name) + "/" + line[at-1])
		if !errors.Is(err, zk.ErrNoNode) { // else it has gone by now
			return gone, err
		}
	}
}

// watch tells when the znode at path changes or goes. All who wait for the same one share a
// watch: the client keeps every one that was ever asked for until it fires.
func (t *trip) watch(path string) (<-chan zk.Event, error) {
	if fires := t.watched(path); fires != nil {
		return fires, nil
	}
	var fires <-chan zk.Event
	err := t.read(func() (err error) {
		_, _, fires, err = t.conn.GetW(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	t.watches[path] = fires
	return fires, nil
}

// watched is the watch on path that there is, unless it has fired: its channel has one
// event then, and is closed.
func (s *Store) watched(path string) <-chan zk.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	fires := s.watches[path]
	if fired(fires) {
		delete(s.watches, path)
		return nil
	}
	return fires
}

func fired(watch <-chan zk.Event) bool {
	select {
	case <-watch:
		return true
	default:
		return false
	}
}

// sweep forgets watches that have fired and that nobody has asked for since.
func (s *Store) sweep() {
	for path, fires := range s.watches {
		if fired(fires) {
			delete(s.watches, path)
		}
	}
}

// A znode's data is empty while it waits, and then its owner's record:
//
//	v1 <digest of the token> <TTL in ms> <label>
//
// The label may have spaces. Anything else is foreign.

func record(c driver.Claim) []byte {
	return fmt.Appendf(nil, "v1 %s %d %s", digest(c.Token), c.TTL.Milliseconds(), c.Label)
}

// owner reads a record. All is zero if it is none.
func owner(data []byte) (token string, held driver.Held) {
	parts := strings.SplitN(string(data), " ", 4)
	if len(parts) != 4 || parts[0] != "v1" {
		return "", held
	}
	ms, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return "", held
	}
	return parts[1], driver.Held{Label: parts[3], Remaining: time.Duration(ms) * time.Millisecond}
}
