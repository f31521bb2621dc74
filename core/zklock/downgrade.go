package zklock

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
)

// A writer becomes a reader in one transaction, which deletes its znode, and creates that of a reader with the same
// number. So its place in line stays, and there is no moment without it. Those who watch the writer's znode are told.
//
// The data of the new znode begins with what the server cannot say of it any more: the fence, and since when.

var errElsewhere = errors.New("zklock: a lease is downgraded by the Store that acquired it: it ends with that one's session")

// downgrade makes the writer that this Store has for c's token a reader. It changes nothing if there is none, if it is
// a reader already, or if c is only to be verified.
func (t *trip) downgrade(c driver.Claim) error {
	if n, path := t.owned(c); n != nil && asReader(path) == path {
		return nil
	}
	n, err := t.take(c.Name, digest(c.Token))
	if err != nil {
		return err
	}
	defer t.leave(n)
	if n.doubt {
		if _, err := t.line(n); err != nil {
			return err
		}
	}
	if !n.owned || reads(n.seat) || c.TTL == 0 {
		return nil
	}
	return t.exchangeFor(n)
}

// exchangeFor gives n, which is a writer's, the znode of a reader.
func (t *trip) exchangeFor(n *node) error {
	t.mu.Lock()
	n.doubt = true
	t.mu.Unlock()
	dir, seat := t.dir(n.key.name)+"/", asReader(n.seat)
	data, stat, err := t.stat(dir + n.seat)
	if err != nil {
		return err
	}
	if stat != nil {
		err = t.exchange(dir+n.seat, &zk.CreateRequest{Path: dir + seat, Data: wasWriter(data, stat), Acl: t.acl, Flags: zk.FlagEphemeral})
		switch {
		case err == nil:
			t.sit(n, seat)
			return nil
		case !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNodeExists):
			return err
		}
	}
	_, err = t.line(n) // it is over, or an earlier command was late
	return err
}

// end deletes the znode of an owner. A writer may have become a reader meanwhile, and never the other way round.
func (t *trip) end(path string, version int32) error {
	err := t.write(func() error { return t.conn.Delete(path, version) })
	if reader := asReader(path); reader != path && errors.Is(err, zk.ErrNoNode) {
		err = t.write(func() error { return t.conn.Delete(reader, -1) })
	}
	return err
}

// asReader is the seat, or the path of one, that a writer at this one has as a reader. Others stay.
func asReader(path string) string {
	at := strings.LastIndexByte(path, '/') + 1
	for _, kind := range []string{exclusive, taken} {
		if rest, ok := strings.CutPrefix(path[at:], kind); ok {
			return path[:at] + shared + rest
		}
	}
	return path
}

// fits says whether c can own a name at a seat.
func fits(seat string, c driver.Claim) bool { return reads(seat) == c.Shared || c.Downgraded }

// wasWriter is the data of a reader that was a writer, whose znode said that.
func wasWriter(data []byte, stat *zk.Stat) []byte {
	return append(fmt.Appendf(nil, "d1 %d %d ", stat.Mzxid, stat.Mtime), data...)
}

// writer cuts off what a reader's data says of its time as a writer. It is as the writer's znode had it: mzxid, mtime.
func writer(data []byte) (rest []byte, mzxid, mtime int64) {
	if n, err := fmt.Sscanf(string(data), "d1 %d %d", &mzxid, &mtime); n != 2 || err != nil {
		return data, 0, 0
	}
	parts := strings.SplitN(string(data), " ", 4)
	return []byte(parts[len(parts)-1]), mzxid, mtime
}
