package zklock

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
)

// The queue of a name is its znodes, in the order of their creation. What their names begin with says who wants the
// name for itself, who shares it, and who is one of a limited number, which has its limit next. What begins with none
// of them is foreign, and wants it for itself.
const (
	exclusive = "write-"
	shared    = "read-"
	limited   = "limit-"
)

// entry begins the name of c's znode.
func entry(c driver.Claim) string {
	switch {
	case c.Shared():
		return shared + digest(c.Token)
	case c.Exclusive():
		return exclusive + digest(c.Token)
	default:
		return limited + strconv.Itoa(c.Limit) + "-" + digest(c.Token)
	}
}

func reads(znode string) bool { return strings.HasPrefix(znode, shared) }

// limit is how many holders a znode allows, and 0 if it is none of a limited number.
func limit(znode string) int {
	rest, ok := strings.CutPrefix(znode, limited)
	if !ok {
		return 0
	}
	digits, _, _ := strings.Cut(rest, "-")
	n, _ := strconv.Atoi(digits)
	return n
}

// lowest is the smallest limit of znodes that all have one.
func lowest(znodes []string) int {
	n := math.MaxInt
	for _, znode := range znodes {
		n = min(n, limit(znode))
	}
	return n
}

// together says whether two znodes can own a name together.
func together(a, b string) bool { return reads(a) && reads(b) || limit(a) > 0 && limit(b) > 0 }

// blocker is the znode in the queue that the one at a position waits for, or "" if there is none: the last one before
// it that it cannot own the name together with.
func blocker(queue []string, at int) string {
	for i := at - 1; i >= 0; i-- {
		if !together(queue[at], queue[i]) {
			return queue[i]
		}
	}
	return ""
}

// crowded says whether those before a position, with which it could own the name, are as many as they allow.
func crowded(queue []string, at int) bool {
	return limit(queue[at]) > 0 && at >= lowest(queue[:at+1])
}

// turn says whether a znode is in the queue, and has nobody to wait for. That stays so while it is there: nobody
// comes before it.
func turn(queue []string, znode string) bool {
	at := slices.Index(queue, znode)
	return at >= 0 && blocker(queue, at) == "" && !crowded(queue, at)
}

// joins says whether one who comes now would have nobody to wait for.
func joins(queue []string, c driver.Claim) bool {
	znode := entry(c) + "-"
	return turn(append(slices.Clip(queue), znode), znode)
}

// owners are the znodes that may own the name: the first one, and those after it that own it together.
func owners(queue []string) []string {
	for i, znode := range queue {
		if i > 0 && !turn(queue, znode) {
			return queue[:i]
		}
	}
	return queue
}

// fewer is what c is told of the limit: 0 if it is its own.
func fewer(queue []string, c driver.Claim) int {
	if n := lowest(owners(queue)); n > 0 && n < c.Limit {
		return n
	}
	return 0
}

// queue returns the znodes of a name in the order of their creation.
func (t *call) queue(name string) ([]string, error) {
	znodes, stat, err := t.children(t.dir(name))
	t.changed = stat.Pzxid
	slices.SortFunc(znodes, before)
	return znodes, err
}

// children are those of a path; none if it is not there.
func (t *call) children(path string) (names []string, stat *zk.Stat, err error) {
	err = t.read(func() (err error) { names, stat, err = t.conn.Children(path); return err })
	if errors.Is(err, zk.ErrNoNode) {
		return nil, new(zk.Stat), nil
	}
	if stat == nil {
		stat = new(zk.Stat)
	}
	return names, stat, err
}

// before orders znodes by the number that the server gave them. It is 32 bits wide and
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

func number(znode string) (int32, error) {
	const digits = 10
	at := max(0, len(znode)-digits)
	if at > 1 && znode[at-1] == '-' && znode[at-2] == '-' { // the second one is a sign
		at--
	}
	n, err := strconv.ParseInt(znode[at:], 10, 32)
	return int32(n), err
}
