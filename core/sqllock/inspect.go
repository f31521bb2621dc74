package sqllock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// Inspect implements inspect.Inspector. It is one read.
func (s *Store) Inspect(ctx context.Context, name string) (info inspect.LeaseInfo, err error) {
	if err := s.ready(ctx); err != nil {
		return info, err
	}
	r, err := s.load(ctx, driver.Claim{Name: name})
	if err == nil {
		err = r.settle()
	}
	if err != nil {
		return info, err
	}
	return r.info(), nil
}

// Leases implements inspect.Inspector. It reads pages of rows, in the order of their names.
func (s *Store) Leases(ctx context.Context, prefix string) iter.Seq2[inspect.LeaseInfo, error] {
	return func(yield func(inspect.LeaseInfo, error) bool) {
		if err := s.ready(ctx); err != nil {
			yield(inspect.LeaseInfo{}, err)
			return
		}
		s.walk(ctx, s.do.list, prefix, func(r row, err error) bool {
			switch {
			case err != nil:
				return yield(inspect.LeaseInfo{}, err)
			case r.free(): // it has ended meanwhile
				return true
			default:
				return yield(r.info(), nil)
			}
		})
	}
}

// walk calls each for the rows whose names begin with prefix, page by page, until it returns false. After an error
// nothing else comes.
func (s *Store) walk(ctx context.Context, page statement, prefix string, each func(r row, err error) bool) {
	for after := ""; ; {
		rows, err := s.page(ctx, page, max(prefix, after), after, prefix+lastRune)
		if err != nil {
			each(row{}, err)
			return
		}
		for _, r := range rows {
			if strings.HasPrefix(r.name, prefix) && !each(r, nil) {
				return
			}
		}
		if len(rows) < rowsPage {
			return
		}
		after = rows[len(rows)-1].name
	}
}

const (
	rowsPage = 200
	lastRune = "\U0010FFFF" // no name goes on with it: what begins with a prefix is before the prefix with this
)

func (s *Store) page(ctx context.Context, stmt statement, from, after, end string) (rows []row, err error) {
	var r row
	var broken error
	err = s.rows(ctx, stmt, []any{from, after, end, rowsPage}, answer{
		begin: func() { rows, broken = nil, nil },
		row: func() {
			r.there = true
			found := r
			broken = cmp.Or(broken, found.settle())
			rows = append(rows, found)
		},
		dest: r.dest(),
	})
	return rows, cmp.Or(err, broken)
}

func (r *row) info() inspect.LeaseInfo {
	info := inspect.LeaseInfo{Name: r.name, Held: !r.free(), Kept: r.kept(), Kind: r.holdKind(), Label: r.label}
	if info.Held {
		info.Remaining = micros(r.expires - r.now)
		info.Fence = uint64(max(0, r.turn))
	}
	if info.Held && !info.Kept {
		info.HeldFor = sinceFence(max(r.turn, -r.turn), r.now)
	}
	if info.Held && !r.together() {
		info.Handle = handle(r.token)
	}
	if info.Kind == inspect.HoldLimited {
		info.Limit = r.allows(driver.Claim{Limit: math.MaxInt})
	}
	for _, h := range r.Holders {
		one := inspect.HolderInfo{
			Label: h.Label, Handle: handle(h.Token), Remaining: micros(h.Ends - r.now), Limit: h.Limit,
		}
		if h.Since > 0 {
			one.HeldFor = micros(max(0, r.now-h.Since))
		}
		info.Holders, info.HeldFor = append(info.Holders, one), max(info.HeldFor, one.HeldFor)
	}
	slices.SortFunc(info.Holders, func(a, b inspect.HolderInfo) int {
		return cmp.Or(cmp.Compare(a.Remaining, b.Remaining), strings.Compare(a.Handle, b.Handle))
	})
	info.Holders = info.Holders[max(0, len(info.Holders)-inspect.MaxLine):]
	for _, e := range r.Queue[:min(len(r.Queue), inspect.MaxLine)] {
		info.Line = append(info.Line, inspect.WaiterInfo{
			Label: e.Label, Waited: micros(max(0, r.now-e.Came)), Alive: e.alive(r.now),
		})
	}
	return info
}

func (r *row) holdKind() inspect.HoldKind {
	switch {
	case r.free():
		return ""
	case r.token == byReaders:
		return inspect.HoldShared
	case r.token == byPermits:
		return inspect.HoldLimited
	case strings.HasPrefix(r.token, handoffFor):
		return inspect.HoldHandoff
	case r.kept():
		return inspect.HoldKept
	default:
		return inspect.HoldExclusive
	}
}

// sinceFence is how long ago a fence was minted: it is the server's clock then, or one more than the last fence if that
// is larger. It is 0 if that cannot be.
func sinceFence(fence, now int64) time.Duration {
	const ancient = 10 * 365 * 24 * time.Hour
	held := micros(now - fence)
	if fence == 0 || held < 0 || held > ancient {
		return 0
	}
	return held
}

// handle is what is shown of a token.
func handle(token string) string {
	sum := sha256.Sum256([]byte(token))
	const bytes = 8
	return hex.EncodeToString(sum[:bytes])
}

// Evict implements inspect.Inspector. It is a read and a write.
func (s *Store) Evict(ctx context.Context, name, handle string) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	var answer error
	err := s.change(ctx, driver.Claim{Name: name}, func(r *row) { answer = r.evict(handle) })
	if err != nil {
		return err
	}
	return answer
}

func (r *row) evict(handle string) error {
	if r.free() {
		return driver.ErrNotOwner
	}
	token, ok := r.meant(handle)
	if !ok {
		return &driver.Held{Label: r.label, Remaining: micros(r.expires - r.now)}
	}
	r.drop(token)
	r.telling = true
	return nil
}

// meant is the token of the holder with a handle.
func (r *row) meant(of string) (token string, ok bool) {
	there := []string{r.token}
	if r.together() {
		there = there[:0]
		for _, holder := range r.Holders {
			there = append(there, holder.Token)
		}
	}
	for _, token := range there {
		if of == handle(token) {
			return token, true
		}
	}
	return "", false
}
