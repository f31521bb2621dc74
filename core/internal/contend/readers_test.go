package contend

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/claim"
)

// shelf is a backend of one name that readers, or as many as a limit says, can hold together. It polls.
type shelf struct {
	mu     sync.Mutex // protects the fields below
	owners map[string]int
	fence  uint64
}

func (s *shelf) Capabilities() driver.Capabilities {
	return driver.Capabilities{Punctual: true, Fence: true, Shared: true, Limit: true}
}

func (s *shelf) Acquire(_ context.Context, c driver.Claim) (driver.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, mine := s.owners[c.Token]; !mine {
		for _, limit := range s.owners {
			if limit != c.Limit || c.Exclusive() || c.Limit > 1 && len(s.owners) >= c.Limit {
				return driver.Grant{}, &driver.Held{}
			}
		}
	}
	s.owners[c.Token] = c.Limit
	s.fence++
	return driver.Grant{Fence: s.fence}, nil
}

func (s *shelf) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return driver.Poll(ctx, c, s.Acquire)
}

func (s *shelf) Renew(_ context.Context, claims []driver.Claim) []error {
	return make([]error, len(claims))
}

func (s *shelf) Release(_ context.Context, c driver.Claim) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, mine := s.owners[c.Token]; !mine {
		return driver.ErrNotOwner
	}
	delete(s.owners, c.Token)
	return nil
}

func TestReadersShareAndWritersDoNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &shelf{owners: map[string]int{}}
		var working [3]atomic.Int32 // writers, readers, those with a limit of two
		var most [3]atomic.Int32
		var all sync.WaitGroup
		var rooms []*Room
		for range 3 {
			r, end := newRoom(d)
			defer end()
			rooms = append(rooms, r)
			for g := range 9 {
				kind := g % 3
				all.Go(func() {
					for range 20 {
						w := plain("")
						w.Limit = []int{0, driver.Readers, 2}[kind]
						w.Work = &job{site: &site{t: t}}
						h, err := get(t.Context(), r, &w, Forever)
						if err != nil {
							t.Error(err)
							return
						}
						n := working[kind].Add(1)
						if n > most[kind].Load() {
							most[kind].Store(n)
						}
						others := working[(kind+1)%3].Load() + working[(kind+2)%3].Load()
						if others > 0 || kind == 0 && n > 1 || kind == 2 && n > 2 {
							t.Errorf("kind %d: %d, and %d others", kind, n, others)
						}
						time.Sleep(5 * time.Millisecond)
						working[kind].Add(-1)
						leave(t.Context(), r, h, claim.Left{})
						time.Sleep(time.Duration(g) * time.Millisecond)
					}
				})
			}
		}
		all.Wait()
		settle(t, rooms...)
		if most[1].Load() < 2 || most[2].Load() != 2 || len(d.owners) > 0 {
			t.Errorf("%d readers, %d with a limit, %d left", most[1].Load(), most[2].Load(), len(d.owners))
		}
	})
}
