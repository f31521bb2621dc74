package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	g, _, err := s.ask(ctx, c, false)
	return g, err
}

// Wait implements driver.Driver. It looks when the znode that it waits for has changed or gone.
func (s *Store) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return driver.Await(ctx, c, func(ctx context.Context) (driver.Grant, <-chan zk.Event, error) { return s.ask(ctx, c, true) })
}

// ask asks for the name once. A claim that is refused stays in the queue, if it wants to, and is told when to ask again.
func (s *Store) ask(ctx context.Context, c driver.Claim, stay bool) (g driver.Grant, told <-chan zk.Event, err error) {
	if err := s.left.tooMany(); err != nil {
		return g, nil, err
	}
	type answer struct {
		g    driver.Grant
		told <-chan zk.Event
	}
	a, err := run(ctx, s, &s.left, func(t *call) (a answer, err error) {
		a.g, a.told, err = t.ask(c, stay)
		return a, err
	})
	return a.g, a.told, err
}

var errUnheard = errors.New("zklock: the session's time-out is not known; zk.Connect wants zk.WithDialer(session.Dial)")

func (t *call) ask(c driver.Claim, stay bool) (g driver.Grant, told <-chan zk.Event, err error) {
	n, err := t.claimant(c)
	if err != nil {
		return g, nil, err
	}
	defer t.leave(n)
	for created := false; ; {
		queue, err := t.lookUp(n)
		switch {
		case err != nil:
		case n.owned || turn(queue, n.znode):
			g, err := t.grant(n, c, created && !n.waits)
			g.Limit = fewer(queue, c)
			return g, nil, err
		case n.znode == "" && isFor(queue, c):
			created, err = t.attach(n, c)
		case n.znode == "" && joins(queue, c):
			created, err = true, t.create(n, c, false)
		case n.znode == "" && stay:
			err = t.create(n, c, true)
		default:
			told, err = t.refuse(n, c, queue, stay)
		}
		if err != nil {
			return g, told, err
		}
	}
}

// claimant takes the node of c's token, once there is a session of which it is known how long it lasts.
func (t *call) claimant(c driver.Claim) (*node, error) {
	if err := t.begin(); err != nil {
		return nil, err
	}
	if t.session.of(t.conn.SessionID()) == 0 {
		return nil, t.unsent(errUnheard)
	}
	return t.take(c.Name, digest(c.Token), false)
}

// create makes c's znode, at the end of the queue, to wait there, or to own a name that was free a moment ago: then it says
// so already.
func (t *call) create(n *node, c driver.Claim, waits bool) error {
	data, lives := record(c), c.TTL
	if waits {
		data, lives = ticket(c), driver.PlaceLife(c.TTL)
	}
	for range 8 { // the parent is deleted whenever the queue is empty
		t.set(func() {
			n.keep(lives)
			n.doubt, n.says, n.waits = true, data, waits
		})
		var path string
		err := t.write(func() (err error) {
			path, err = t.conn.Create(t.dir(c.Name)+"/"+entry(c)+"-", []byte(data), zk.FlagEphemeralSequential, t.acl)
			return err
		})
		switch {
		case err == nil:
			t.sit(n, path[strings.LastIndexByte(path, '/')+1:])
			t.set(func() { delete(t.idle, c.Name) })
			return nil
		case unknown(err) && !errors.Is(err, driver.ErrNotSent):
			return err
		}
		t.sit(n, "")
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if err := t.makeDir(c.Name); err != nil {
			return err
		}
	}
	return t.unsent(zk.ErrNoNode)
}

// grant gives the name to c, whose znode has nobody to wait for and never will, for as long as it is there. If that was not
// created just now, it writes, since that is what proves that the session lives: a server that has lost its leader goes on
// answering reads for a while.
func (t *call) grant(n *node, c driver.Claim, created bool) (g driver.Grant, err error) {
	t.set(func() { n.keep(c.TTL) })
	path := t.dir(c.Name) + "/" + n.znode
	var stat *zk.Stat
	if created {
		err = t.read(func() (err error) { _, stat, err = t.conn.Exists(path); return err })
	}
	// Somebody who was before it may have had the name since, with a later fence.
	if err == nil && (!created || stat.Mzxid < t.changed && limit(n.znode) == 0) {
		err = t.write(func() (err error) { stat, err = t.conn.Set(path, []byte(record(c)), -1); return err })
	}
	if err != nil {
		return g, err
	}
	timeout := t.session.of(stat.EphemeralOwner)
	if timeout == 0 { // it ended meanwhile, or is another program's
		return g, zk.ErrSessionExpired
	}
	if stat.Mzxid < 0 || stat.Mzxid > 1<<53 {
		return g, fmt.Errorf("zklock: an mzxid of %d is no fence", stat.Mzxid)
	}
	t.set(func() { n.owned, n.waits, n.session = true, false, stat.EphemeralOwner })
	g.Longest = trusted(timeout)
	g.TTL = min(c.TTL, g.Longest)
	if limit(n.znode) == 0 {
		g.Fence = uint64(stat.Mzxid)
	}
	return g, nil
}

// refuse says who has the name, if it is not c's turn, and when to ask again. Without an error, that has changed meanwhile.
func (t *call) refuse(n *node, c driver.Claim, queue []string, stay bool) (told <-chan zk.Event, err error) {
	held, err := t.held(c, queue)
	switch {
	case err != nil || held == nil:
		return nil, err
	case stay:
		told, err = t.stay(n, c, queue)
		if errors.Is(err, zk.ErrNoNode) {
			return nil, nil
		}
	case n.znode != "" && !n.waits:
		if _, err := t.remove(n); err != nil {
			t.set(n.retry)
		}
	}
	if err != nil {
		return nil, err
	}
	return told, held
}

// stay keeps c's entry alive, and has it say who waits there now: another caller of the same process, perhaps. It
// returns what tells of the end of what c waits for.
func (t *call) stay(n *node, c driver.Claim, queue []string) (<-chan zk.Event, error) {
	t.set(func() { n.keep(driver.PlaceLife(c.TTL)) })
	if says := ticket(c); n.says != says || !n.waits {
		err := t.write(func() error { _, err := t.conn.Set(t.dir(c.Name)+"/"+n.znode, []byte(says), -1); return err })
		if err != nil {
			return nil, err
		}
		t.set(func() { n.says, n.waits = says, true })
	}
	return t.watchFor(c.Name, queue, slices.Index(queue, n.znode))
}

// held says who has the name. A claim that waits for one of a limited number learns whose TTL ends first. It is nil if
// the name was left for a hand-off, whose time is over, or which is gone.
func (t *call) held(c driver.Claim, queue []string) (*driver.Held, error) {
	if isLeft(queue[0]) {
		return t.leftOver(c.Name, queue[0])
	}
	asked := queue[:1]
	if limit(queue[0]) > 0 && limit(entry(c)) > 0 {
		asked = owners(queue)
	}
	var held driver.Held
	for _, znode := range asked {
		data, _, err := t.get(t.dir(c.Name) + "/" + znode)
		if err != nil {
			return nil, err
		}
		id, one := owner(znode, data)
		if id != "" && (held.Remaining == 0 || one.Remaining < held.Remaining) {
			held = one
		}
	}
	if together(queue[0], queue[0]) {
		held.Label = "" // it is one of several
	}
	held.Limit = fewer(queue, c)
	return &held, nil
}
