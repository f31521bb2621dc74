package zklock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
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
func (s *store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return run(ctx, s, func(t *trip) (driver.Grant, error) { return t.acquire(c) })
}

func (t *trip) acquire(c driver.Claim) (g driver.Grant, err error) {
	if err := t.begin(); err != nil {
		return g, err
	}
	if t.session.of(t.conn.SessionID()) == 0 {
		return g, t.unsent(errUnheard)
	}
	if c.Handoff != "" {
		if g, has, err := t.attach(c); has || err != nil {
			return g, err
		}
	}
	n, err := t.take(c.Name, digest(c.Token), seatOf(c))
	if err != nil {
		return g, err
	}
	defer t.leave(n)
	line, err := t.line(n)
	if err == nil {
		line, err = t.settle(c.Name, line)
	}
	if err == nil {
		return t.seize(n, c, line)
	}
	if n.waits {
		t.keep(n, driver.PlaceLife(c.TTL))
	}
	return g, err
}

// seize gives the name to c, if that is its turn.
func (t *trip) seize(n *node, c driver.Claim, line []string) (g driver.Grant, err error) {
	switch {
	case turn(line, n.seat) && n.owned:
		if c.Place != "" { // it stands behind what an earlier command got
			_, err = t.vacate(c.Name, seatOf(c))
		}
		if err == nil {
			g, err = t.again(n, c)
		}
	case turn(line, n.seat):
		g, err = t.bind(n, c)
	case n.waits:
		t.keep(n, driver.PlaceLife(c.TTL))
		return g, t.held(c, line)
	case n.seat == "" && !joins(line, c):
		return g, t.held(c, line)
	default:
		return t.enlist(n, c)
	}
	g.Limit = fewer(line, c)
	return g, err
}

var errUnheard = errors.New("zklock: the session's time-out is not known; zk.Connect wants zk.WithDialer(session.Dial)")

// enlist takes a name that was free a moment ago, with a znode that says so already.
func (t *trip) enlist(n *node, c driver.Claim) (g driver.Grant, err error) {
	t.keep(n, c.TTL)
	if n.seat == "" {
		if err := t.create(n, record(c), false); err != nil {
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
	switch {
	case err != nil:
		return g, err
	case stat.Mzxid < t.changed && limit(n.seat) == 0: // somebody who was before it may have had the name since, with a later fence
		g, err = t.bind(n, c)
	default:
		g, err = t.granted(n, c, stat)
	}
	g.Limit = fewer(line, c)
	return g, err
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

// again grants c what its token has already. As a renewal, it changes nothing, so that the znode goes on
// saying since when, unless the claim has another label or TTL.
func (t *trip) again(n *node, c driver.Claim) (g driver.Grant, err error) {
	t.keep(n, c.TTL)
	path := t.dir(c.Name) + "/" + n.seat
	var data []byte
	var stat *zk.Stat
	err = t.read(func() (err error) {
		data, stat, err = t.conn.Get(path)
		return err
	})
	if err == nil && !bytes.Equal(data, record(c)) {
		return t.bind(n, c)
	}
	if err == nil {
		err = t.read(func() error {
			_, err := t.conn.Multi(&zk.CheckVersionRequest{Path: path, Version: -1})
			return err
		})
	}
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
	if stat.Mzxid < 0 || stat.Mzxid > 1<<53 {
		return g, fmt.Errorf("zklock: an mzxid of %d is no fence", stat.Mzxid)
	}
	t.own(n, digest(c.Token), c.TTL, stat.EphemeralOwner)
	g.Longest = trusted(timeout)
	g.TTL = min(c.TTL, g.Longest)
	if c.Limit <= 1 {
		g.Fence = uint64(stat.Mzxid)
	}
	return g, nil
}

// held says who has the name. A claim that waits for one of a limited number learns whose TTL ends first.
func (t *trip) held(c driver.Claim, line []string) error {
	if len(line) == 0 {
		return &driver.Held{}
	}
	asked := line[:1]
	if limit(line[0]) > 0 && limit(seatOf(c)) > 0 {
		asked = owners(line)
	}
	var held driver.Held
	for _, seat := range asked {
		data, err := t.get(t.dir(c.Name) + "/" + seat)
		if err != nil {
			return err
		}
		token, one := owner(data)
		if token != "" && (held.Remaining == 0 || one.Remaining < held.Remaining) {
			held = one
		}
	}
	if together(line[0], line[0]) {
		held.Label = "" // it is one of several
	}
	held.Limit = fewer(line, c)
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
func (s *store) Release(ctx context.Context, c driver.Claim) error {
	_, err := run(ctx, s, func(t *trip) (struct{}, error) { return struct{}{}, t.release(c) })
	return err
}

func (t *trip) release(c driver.Claim) error {
	if c.Handoff != "" {
		return errors.Join(t.detach(c), t.vacatePlace(c))
	}
	owned, err := t.vacate(c.Name, digest(c.Token), seatOf(c))
	if err != nil {
		return err
	}
	if err := t.vacatePlace(c); err != nil || owned {
		return err
	}
	return t.releaseElsewhere(c)
}

// vacatePlace takes c's place out of the line, if it has one.
func (t *trip) vacatePlace(c driver.Claim) error {
	if c.Place == "" {
		return nil
	}
	_, err := t.vacate(c.Name, seatOf(c))
	return err
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

// detach leaves what c owns for a hand-off.
func (t *trip) detach(c driver.Claim) error {
	n, path := t.owned(c)
	if n == nil {
		seat, err := t.find(c)
		if err != nil {
			return err
		}
		return t.leaveFor(c, t.dir(c.Name)+"/"+seat)
	}
	err := t.leaveFor(c, path)
	if err == nil || errors.Is(err, driver.ErrNotOwner) {
		t.lose(n, path)
	}
	return err
}

// releaseElsewhere releases what another Store got for c's token.
func (t *trip) releaseElsewhere(c driver.Claim) error {
	seat, err := t.find(c)
	if err != nil {
		return err
	}
	if err = t.end(c.Name, seat, -1); errors.Is(err, zk.ErrNoNode) {
		return driver.ErrNotOwner
	}
	return err
}

// find is the znode that another Store has for c's token, or ErrNotOwner.
func (t *trip) find(c driver.Claim) (seat string, err error) {
	dir := t.dir(c.Name)
	line, err := t.seats(dir)
	if err != nil {
		return "", err
	}
	for _, seat := range owners(line) {
		data, err := t.get(dir + "/" + seat)
		if err != nil {
			return "", err
		}
		if token, _ := owner(data); token == digest(c.Token) && fits(seat, c) {
			return seat, nil
		}
	}
	return "", driver.ErrNotOwner
}
