package zklock

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// What the names of znodes begin with: of those that want a name for themselves, of those that share
// it, and of one of a limited number, which has its limit next. What begins with none of them is foreign,
// and wants it for itself.
const (
	exclusive = "write-"
	shared    = "read-"
	limited   = "limit-"
)

// seatOf begins the name of the znode that stands in line for c.
func seatOf(c driver.Claim) string {
	switch {
	case c.Shared:
		return shared + digest(c.At())
	case c.Exclusive():
		return exclusive + digest(c.At())
	default:
		return limited + strconv.Itoa(c.Limit) + "-" + digest(c.At())
	}
}

func reads(seat string) bool { return strings.HasPrefix(seat, shared) }

// limit is how many holders a seat allows, and 0 if it is none of a limited number.
func limit(seat string) int {
	rest, ok := strings.CutPrefix(seat, limited)
	if !ok {
		return 0
	}
	digits, _, _ := strings.Cut(rest, "-")
	n, _ := strconv.Atoi(digits)
	return n
}

// lowest is the smallest limit of seats that all have one.
func lowest(seats []string) int {
	n := math.MaxInt
	for _, seat := range seats {
		n = min(n, limit(seat))
	}
	return n
}

// together says whether two seats can own a name together.
func together(a, b string) bool { return reads(a) && reads(b) || limit(a) > 0 && limit(b) > 0 }

// blocker is the seat in line that the one at a position waits for, or "" if there is none: the last one before
// it that it cannot own the name together with.
func blocker(line []string, at int) string {
	for i := at - 1; i >= 0; i-- {
		if !together(line[at], line[i]) {
			return line[i]
		}
	}
	return ""
}

// crowded says whether those before a position, with which it could own the name, are as many as they allow.
func crowded(line []string, at int) bool { return limit(line[at]) > 0 && at >= lowest(line[:at+1]) }

// turn says whether a seat is in line, and has nobody to wait for. That stays so while it is in line: nobody
// comes before it.
func turn(line []string, seat string) bool {
	at := slices.Index(line, seat)
	return at >= 0 && blocker(line, at) == "" && !crowded(line, at)
}

// joins says whether one who comes now would have nobody to wait for.
func joins(line []string, c driver.Claim) bool {
	seat := seatOf(c) + "-"
	return turn(append(slices.Clip(line), seat), seat)
}

// owners are the seats that may own the name: the first one, and those after it that own it together.
func owners(line []string) []string {
	for i, seat := range line {
		if i > 0 && !turn(line, seat) {
			return line[:i]
		}
	}
	return line
}

// fewer is what c is told of the limit: 0 if it is its own.
func fewer(line []string, c driver.Claim) int {
	if n := lowest(owners(line)); n > 0 && n < c.Limit {
		return n
	}
	return 0
}

// seats returns the children of dir in the order in which they were created.
func (t *trip) seats(dir string) (seats []string, err error) {
	var stat *zk.Stat
	err = t.read(func() error { seats, stat, err = t.conn.Children(dir); return err })
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t.changed = stat.Pzxid
	slices.SortFunc(seats, before)
	return seats, nil
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
func (s *store) Wait(ctx context.Context, c driver.Claim) error {
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

// watchFor tells when the one that a position waits for has gone, or has been granted the name. The first one that
// waits for any of a limited number to go hears of everybody who comes and goes; those behind it wait for that one.
func (t *trip) watchFor(dir string, line []string, at int) (<-chan zk.Event, error) {
	if before := blocker(line, at); before != "" {
		return t.watch(dir + "/" + before)
	}
	if crowded(line, at-1) {
		return t.watch(dir + "/" + line[at-1])
	}
	return t.watchAll(dir, line)
}

// lineUp stands in line at c's place. No channel means that it is that place's turn; else it
// tells when the one before has gone, or has been granted the name.
func (t *trip) lineUp(c driver.Claim) (<-chan zk.Event, error) {
	n, err := t.take(c.Name, digest(c.Token), seatOf(c))
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
		if at < 0 {
			if err := t.stand(n, c); err != nil {
				return nil, err
			}
			continue
		}
		before := blocker(line, at)
		if before == "" && !crowded(line, at) {
			return nil, nil //nolint:nilnil // documented
		}
		if over, err := t.unclaimed(c.Name, line, before); err != nil {
			return nil, err
		} else if over {
			continue
		}
		if err := t.relabel(n, c); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		} else if err != nil { // our place has gone by now
			continue
		}
		gone, err := t.watchFor(t.dir(c.Name), line, at)
		if !errors.Is(err, zk.ErrNoNode) { // else it has gone by now
			return gone, err
		}
	}
}
