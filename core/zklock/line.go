package zklock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
)

// What the names of znodes begin with: of those that want a name for themselves, and of those
// that share it. What begins with neither is foreign, and wants it for itself.
const (
	exclusive = "write-"
	shared    = "read-"
)

// seatOf begins the name of the znode that stands in line for c.
func seatOf(c driver.Claim) string {
	if c.Shared {
		return shared + digest(c.At())
	}
	return exclusive + digest(c.At())
}

func reads(seat string) bool { return strings.HasPrefix(seat, shared) }

// blocker is the seat in line that the one at a position waits for, or "" if that one's turn
// has come: the one before it; for a reader, the last one before it that is no reader.
func blocker(line []string, at int) string {
	for i := at - 1; i >= 0; i-- {
		if !reads(line[at]) || !reads(line[i]) {
			return line[i]
		}
	}
	return ""
}

// turn says whether a seat is in line, and has nobody to wait for.
func turn(line []string, seat string) bool {
	at := slices.Index(line, seat)
	return at >= 0 && blocker(line, at) == ""
}

// joins says whether one who comes now would have nobody to wait for.
func joins(line []string, c driver.Claim) bool {
	if c.Shared {
		return !slices.ContainsFunc(line, func(seat string) bool { return !reads(seat) })
	}
	return len(line) == 0
}

// owners are the seats that may own the name: the first one, or all readers before the first
// writer.
func owners(line []string) []string {
	for i, seat := range line {
		if !reads(seat) {
			return line[:max(1, i)]
		}
	}
	return line
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
			if err := t.create(n, nil); err != nil {
				return nil, err
			}
			continue
		}
		before := blocker(line, at)
		if before == "" {
			return nil, nil //nolint:nilnil // documented
		}
		gone, err := t.watch(t.dir(c.Name) + "/" + before)
		if !errors.Is(err, zk.ErrNoNode) { // else it has gone by now
			return gone, err
		}
	}
}
