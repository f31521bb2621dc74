package zklock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// stand makes n's znode, at the end of the line, to wait there for c.
func (t *trip) stand(n *node, c driver.Claim) error {
	t.mu.Lock()
	n.label = c.Label
	t.mu.Unlock()
	return t.create(n, ticket(c), true)
}

// relabel says on a ticket who waits there now: another caller of the same process, perhaps.
func (t *trip) relabel(n *node, c driver.Claim) error {
	if n.label == c.Label {
		return nil
	}
	err := t.write(func() error { _, err := t.conn.Set(t.dir(n.key.name)+"/"+n.seat, ticket(c), -1); return err })
	if err == nil {
		t.mu.Lock()
		n.label = c.Label
		t.mu.Unlock()
	}
	return err
}

// create makes n's znode, at the end of the line, to wait there or to own the name at once.
func (t *trip) create(n *node, data []byte, waits bool) error {
	for range 8 { // the parent is deleted whenever nobody stands in line
		t.mu.Lock()
		n.doubt, n.waits = true, waits
		t.mu.Unlock()
		var path string
		err := t.write(func() (err error) {
			path, err = t.conn.Create(t.dir(n.key.name)+"/"+n.id+"-"+onlyOnce()+"-", data, zk.FlagEphemeralSequential, t.acl)
			return err
		})
		switch {
		case err == nil:
			t.sit(n, path[strings.LastIndexByte(path, '/')+1:])
			t.use(n.key.name)
			return nil
		case unknown(err) && !errors.Is(err, driver.ErrNotSent):
			return err
		}
		t.sit(n, "")
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if err := t.makeDir(n.key.name); err != nil {
			return err
		}
	}
	return t.unsent(zk.ErrNoNode)
}

// onlyOnce goes into the name of a znode, so that no later one has the same: numbers begin again with the line, and a place can
// be taken again. Otherwise a command that is late, or sent again, would meet the later one.
func onlyOnce() string {
	return fmt.Sprintf("%08x", rand.Uint32()) //nolint:gosec // G404: no secret
}

// remove deletes n's znode, and says whether there was one.
func (t *trip) remove(n *node) (bool, error) {
	if n.doubt && n.seat == "" {
		if _, err := t.line(n); err != nil {
			return false, err
		}
	}
	if n.seat == "" {
		return false, nil
	}
	err := t.end(n.key.name, n.seat, -1)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	t.sit(n, "")
	return err == nil, nil
}

// line returns the znodes that stand in line for n's name, in order, and settles whether n
// has one.
func (t *trip) line(n *node) ([]string, error) {
	dir := t.dir(n.key.name)
	if n.doubt {
		// An answer that we have missed may be from a server that is ahead of the one that we
		// have now.
		err := t.read(func() error { _, err := t.conn.Sync(dir); return err })
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
	}
	seats, err := t.seats(dir)
	if err != nil {
		return nil, err
	}
	mine := func(seat string) bool { return seat == n.seat }
	if n.doubt && n.seat == "" {
		mine = func(seat string) bool { return strings.HasPrefix(seat, n.id+"-") && !t.elsewhere(n, seat) }
	}
	seat := ""
	if i := slices.IndexFunc(seats, mine); i >= 0 {
		seat = seats[i]
	}
	t.sit(n, seat)
	return seats, nil
}

// end deletes a znode of a name.
func (t *trip) end(name, seat string, version int32) error {
	defer t.disuse(name)
	return t.write(func() error { return t.conn.Delete(t.dir(name)+"/"+seat, version) })
}

// fits says whether c can own a name at a seat.
func fits(seat string, c driver.Claim) bool { return reads(seat) == c.Shared }
