package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
)

// trusted is how long a lease may last in a session with that time-out.
//
// A server of an ensemble tells its leader with each of their pings, every half tick, whom it
// has heard since the last one, and nothing once it is cut off. The client is heard every third
// of the time-out at least. So when a lease begins, a third of the time-out and half a tick
// may have passed already; and a tick is half of the time-out at most. Of twelve parts five
// are left.
func trusted(timeout time.Duration) time.Duration { return timeout * 2 / 5 }

// Acquire implements driver.Driver.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return run(ctx, s, func(t *trip) (driver.Grant, error) { return t.acquire(c) })
}

func (t *trip) acquire(c driver.Claim) (g driver.Grant, err error) {
	if err := t.begin(); err != nil {
		return g, err
	}
	if t.session.of(t.conn.SessionID()) == 0 {
		return g, t.unsent(errUnheard)
	}
	n, err := t.take(c.Name, digest(c.Token), seatOf(c))
	if err != nil {
		return g, err
	}
	defer t.leave(n)
	line, err := t.line(n)
	switch {
	case err != nil:
		return g, err
	case turn(line, n.seat):
		if n.owned && c.Place != "" { // it stands behind what an earlier command got
			if _, err := t.vacate(c.Name, seatOf(c)); err != nil {
				return g, err
			}
		}
		return t.bind(n, c)
	case n.waits:
		t.keep(n, driver.PlaceLife(c.TTL))
		return g, t.held(c, line)
	case n.seat == "" && !joins(line, c):
		return g, t.held(c, line)
	}
	return t.enlist(n, c)
}

var errUnheard = errors.New("zklock: the session's time-out is not known; zk.Connect wants zk.WithDialer(session.Dial)")

// enlist takes a name that was free a moment ago, with a znode that says so already.
func (t *trip) enlist(n *node, c driver.Claim) (g driver.Grant, err error) {
	t.keep(n, c.TTL)
	if n.seat == "" {
		if err := t.create(n, record(c)); err != nil {
			return g, err
		}
	}
	line, err := t.line(n)
	if err != nil {
		return g, err
	}
	if !turn(line, n.seat) {
		if _, err := t.remove(n); err != nil {
			t.keepTrying(n)
		}
		return g, t.held(c, line)
	}
	var stat *zk.Stat
	err = t.read(func() (err error) {
		_, stat, err = t.conn.Exists(t.dir(c.Name) + "/" + n.seat)
		return err
	})
	if err != nil {
		return g, err
	}
	return t.granted(n, c, stat)
}

// bind gives the name to c, whose znode has nobody to wait for and never will, for as long as it
// is there. It writes, since that is what proves that the session lives: a server that has
// lost its leader goes on answering reads for a while.
func (t *trip) bind(n *node, c driver.Claim) (g driver.Grant, err error) {
	t.keep(n, c.TTL)
	var stat *zk.Stat
	err = t.write(func() (err error) {
		stat, err = t.conn.Set(t.dir(c.Name)+"/"+n.seat, record(c), -1)
		return err
	})
	if err != nil {
		return g, err
	}
	return t.granted(n, c, stat)
}

func (t *trip) granted(n *node, c driver.Claim, stat *zk.Stat) (g driver.Grant, err error) {
	timeout := t.session.of(stat.EphemeralOwner)
	if timeout == 0 { // it ended meanwhile, or is another program's
		return g, zk.ErrSessionExpired
	}
	if stat.Czxid < 0 || stat.Czxid > 1<<53 {
		return g, fmt.Errorf("zklock: a czxid of %d is no fence", stat.Czxid)
	}
	t.own(n, digest(c.Token), c.TTL)
	return driver.Grant{Fence: uint64(stat.Czxid), TTL: min(c.TTL, trusted(timeout))}, nil
}

// held says who has the name.
func (t *trip) held(c driver.Claim, line []string) error {
	if len(line) == 0 {
		return &driver.Held{}
	}
	data, err := t.get(t.dir(c.Name) + "/" + line[0])
	if err != nil {
		return err
	}
	_, held := owner(data)
	if reads(line[0]) {
		held.Label = "" // it is one of several
	}
	return &held
}

// get returns what a znode says, and nothing if it has gone.
func (t *trip) get(path string) (data []byte, err error) {
	err = t.read(func() (err error) { data, _, err = t.conn.Get(path); return err })
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return data, err
}

// Release implements driver.Driver.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	_, err := run(ctx, s, func(t *trip) (struct{}, error) { return struct{}{}, t.release(c) })
	return err
}

func (t *trip) release(c driver.Claim) error {
	owned, err := t.vacate(c.Name, digest(c.Token), seatOf(c))
	if err != nil {
		return err
	}
	if c.Place != "" {
		if _, err := t.vacate(c.Name, seatOf(c)); err != nil {
			return err
		}
	}
	if owned {
		return nil
	}
	return t.releaseElsewhere(c)
}

// vacate deletes what this Store has under the first of some keys, and says whether that was an
// owner's. What fails is tried again, whether or not the caller has time for that.
func (t *trip) vacate(name string, ids ...string) (owned bool, err error) {
	n, err := t.take(name, ids...)
	if err != nil {
		return false, err
	}
	defer t.leave(n)
	owner := !n.waits
	there, err := t.remove(n)
	if err != nil {
		t.keepTrying(n)
	}
	return there && owner, err
}

// releaseElsewhere releases what another Store got for c's token.
func (t *trip) releaseElsewhere(c driver.Claim) error {
	dir := t.dir(c.Name)
	path, err := t.find(dir, c)
	if err != nil {
		return err
	}
	err = t.write(func() error { return t.conn.Delete(path, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return driver.ErrNotOwner
	}
	return err
}

// find is the path of the znode that another Store has for c's token, or ErrNotOwner.
func (t *trip) find(dir string, c driver.Claim) (string, error) {
	line, err := t.seats(dir)
	if err != nil {
		return "", err
	}
	for _, seat := range owners(line) {
		path := dir + "/" + seat
		data, err := t.get(path)
		if err != nil {
			return "", err
		}
		if token, _ := owner(data); token == digest(c.Token) {
			return path, nil
		}
	}
	return "", driver.ErrNotOwner
}
