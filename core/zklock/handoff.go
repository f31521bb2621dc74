package zklock

import (
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// A name that is left for a hand-off has a znode that is not ephemeral: whoever left it may be gone. Who takes
// it over has one that is. Neither has a number, so both are before everybody in line. Each is there at most
// once at a time: what makes it deletes, in the same transaction, what gave the right to.
const (
	left  = "left-"
	taken = "taken-"
)

func leftSeat(handoff string) string { return left + digest(handoff) + "-" }

func isLeft(seat string) bool { return strings.HasPrefix(seat, left) }

// leaveFor releases the name of the owner at path, and leaves it for c's hand-off.
func (t *trip) leaveFor(c driver.Claim, path string) error {
	seat := leftSeat(c.Handoff)
	err := t.exchange(path, &zk.CreateRequest{Path: t.dir(c.Name) + "/" + seat, Data: leftRecord(c), Acl: t.acl})
	if errors.Is(err, zk.ErrNoNode) {
		return driver.ErrNotOwner
	}
	if err != nil {
		return err
	}
	n, err := t.take(c.Name, seat) // which this Store deletes at its time, unless it is gone by then
	if err != nil {
		return nil // then whoever wants the name deletes it
	}
	defer t.leave(n)
	t.sit(n, seat)
	t.keep(n, c.Keep+c.Keep/100) // this clock may be a little faster than that of the server
	return nil
}

// exchange deletes one znode, and creates another one in the same step.
func (t *trip) exchange(path string, create *zk.CreateRequest) error {
	return t.write(func() error {
		answers, err := t.conn.Multi(&zk.DeleteRequest{Path: path, Version: -1}, create)
		for _, answer := range answers {
			if err == nil || errors.Is(answer.Error, zk.ErrNoNode) || errors.Is(answer.Error, zk.ErrNodeExists) {
				err = answer.Error
			}
		}
		return err
	})
}

// attach takes over a name that was left for c's hand-off. It says whether c has the name.
func (t *trip) attach(c driver.Claim) (g driver.Grant, has bool, err error) {
	n, err := t.take(c.Name, digest(c.Token), taken+digest(c.Token))
	if err != nil {
		return g, false, err
	}
	defer t.leave(n)
	line, err := t.line(n)
	if err != nil || n.owned {
		return g, false, err
	}
	if n.seat == "" { // else an earlier command was not answered
		seat := leftSeat(c.Handoff)
		if len(line) == 0 || line[0] != seat {
			return g, false, nil
		}
		t.mu.Lock()
		n.doubt, n.waits = true, false
		t.mu.Unlock()
		t.keep(n, c.TTL)
		dir := t.dir(c.Name) + "/"
		err = t.exchange(dir+seat, &zk.CreateRequest{Path: dir + n.id + "-", Data: record(c), Acl: t.acl, Flags: zk.FlagEphemeral})
		switch {
		case errors.Is(err, zk.ErrNoNode): // it is over, or another one has used it
			t.sit(n, "")
			return g, false, nil
		case err != nil:
			return g, false, err
		}
		t.sit(n, n.id+"-")
	}
	g, err = t.again(n, c)
	return g, err == nil, err
}

// settle takes a name that was left for a hand-off out of the line if its time is over. Otherwise the error says
// who left it. If it is gone, somebody may have taken the name over, and stand in its place: so the line is read again.
func (t *trip) settle(name string, line []string) ([]string, error) {
	for len(line) > 0 && isLeft(line[0]) {
		err := t.deleteLeft(name, line[0])
		if err == nil {
			return line[1:], nil
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
		if line, err = t.seats(t.dir(name)); err != nil {
			return nil, err
		}
	}
	return line, nil
}

// deleteLeft deletes what was left for a hand-off, unless its time is not over. What time it is, the server says of what is
// written. So that costs a write.
func (t *trip) deleteLeft(name, seat string) error {
	path := t.dir(name) + "/" + seat
	data, stat, err := t.stat(path)
	switch {
	case err != nil:
		return err
	case stat == nil:
		return zk.ErrNoNode
	}
	dir, _, err := t.stat(t.dir(name)) // which stays as it is
	if err != nil {
		return err
	}
	var now *zk.Stat
	err = t.write(func() (err error) { now, err = t.conn.Set(t.dir(name), dir, -1); return err })
	if err != nil {
		return err
	}
	_, held := ownerOf("l1", data)
	if held.Remaining -= time.Duration(now.Mtime-stat.Ctime) * time.Millisecond; held.Remaining > 0 {
		return &held
	}
	return t.end(name, seat, -1)
}

// unclaimed says whether the seat that somebody waits for was left for a hand-off whose time is over now.
func (t *trip) unclaimed(name string, line []string, seat string) (bool, error) {
	if !isLeft(seat) || line[0] != seat { // a name of other software can stand before it
		return false, nil
	}
	_, err := t.settle(name, line)
	if _, held := errors.AsType[*driver.Held](err); held {
		return false, nil
	}
	return err == nil, err
}
