package zklock

import (
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
)

// A name that is left for a hand-off has a znode that is not ephemeral: whoever left it may be gone. Who takes
// it over has one that is. Neither has a number, so both are before everybody in the queue. Each is there at most
// once at a time: what makes it deletes, in the same transaction, what gave the right to.
const (
	left  = "left-"
	taken = "taken-"
)

func leftFor(handoff string) string { return left + digest(handoff) + "-" }

func isLeft(znode string) bool { return strings.HasPrefix(znode, left) }

// isFor says whether the name was left for c's hand-off.
func isFor(queue []string, c driver.Claim) bool {
	return c.Handoff != "" && len(queue) > 0 && queue[0] == leftFor(c.Handoff)
}

// detach releases what c owns, and leaves the name for c's hand-off.
func (t *call) detach(n *node, c driver.Claim) error {
	err := t.exchange(c.Name, n.znode, &zk.CreateRequest{Path: leftFor(c.Handoff), Data: []byte(leftRecord(c))})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		t.sit(n, "")
		return driver.ErrNotOwner
	case err != nil:
		return err
	}
	t.sit(n, "")
	l, err := t.take(c.Name, digest(c.Handoff), false) // which this Store deletes at its time, unless it is gone before that
	if err != nil {
		return nil // then whoever wants the name deletes it
	}
	defer t.leave(l)
	t.sit(l, leftFor(c.Handoff))
	t.set(func() { l.keep(c.Keep + c.Keep/100) }) // this clock may be a little faster than that of the server
	return nil
}

// exchange deletes one znode of a name, and creates another one in the same step.
func (t *call) exchange(name, znode string, create *zk.CreateRequest) error {
	dir := t.dir(name) + "/"
	create.Path, create.Acl = dir+create.Path, t.acl
	return t.write(func() error {
		answers, err := t.conn.Multi(&zk.DeleteRequest{Path: dir + znode, Version: -1}, create)
		for _, answer := range answers {
			if err == nil || errors.Is(answer.Error, zk.ErrNoNode) || errors.Is(answer.Error, zk.ErrNodeExists) {
				err = answer.Error
			}
		}
		return err
	})
}

// attach takes over the name that was left for c's hand-off, unless that is over, or another one has used it.
func (t *call) attach(n *node, c driver.Claim) (attached bool, err error) {
	data := record(c)
	t.set(func() {
		n.keep(c.TTL)
		n.doubt, n.says = true, data
	})
	znode := taken + digest(c.Token) + "-"
	err = t.exchange(c.Name, leftFor(c.Handoff), &zk.CreateRequest{Path: znode, Data: []byte(data), Flags: zk.FlagEphemeral})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		t.sit(n, "")
		return false, nil
	case err == nil:
		t.sit(n, znode)
	}
	return err == nil, err
}

// leftOver says who left a name for a hand-off. It deletes that if its time is over, and then there is nothing to say. What time
// it is, the server says of what is written. So that costs a write.
func (t *call) leftOver(name, znode string) (*driver.Held, error) {
	data, stat, err := t.get(t.dir(name) + "/" + znode)
	if err != nil || stat == nil {
		return nil, err
	}
	dir, _, err := t.get(t.dir(name)) // which stays as it is
	if err != nil {
		return nil, err
	}
	var now *zk.Stat
	err = t.write(func() (err error) { now, err = t.conn.Set(t.dir(name), dir, -1); return err })
	if err == nil {
		_, held := owner(znode, data)
		if held.Remaining -= time.Duration(now.Mtime-stat.Ctime) * time.Millisecond; held.Remaining > 0 {
			return &held, nil
		}
		err = t.end(name, znode, -1)
	}
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	return nil, err
}
