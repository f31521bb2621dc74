package claim

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
)

// slow is a service that has one name. Each command arrives after a delay of its own, and its answer is lost
// if that is longer than its caller waits.
type slow struct {
	driver.Driver

	mu       sync.Mutex
	owner    string
	expires  time.Time
	releases int
	takes    int
	delay    func(op string) time.Duration
}

func (s *slow) Capabilities() driver.Capabilities { return driver.Capabilities{} }

func (s *slow) Acquire(_ context.Context, c driver.Claim) (driver.Grant, error) {
	time.Sleep(s.delay("acquire"))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner != "" && s.owner != c.Token && time.Now().Before(s.expires) {
		return driver.Grant{}, &driver.Held{}
	}
	s.takes++
	s.owner, s.expires = c.Token, time.Now().Add(c.TTL)
	return driver.Grant{}, nil
}

func (s *slow) Release(_ context.Context, c driver.Claim) error {
	time.Sleep(s.delay("release"))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releases++
	if s.owner != c.Token {
		return driver.ErrNotOwner
	}
	s.owner = ""
	return nil
}

func (s *slow) seen() (owner string, takes, releases int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owner, s.takes, s.releases
}

func TestWhatALateCommandTakesIsGivenBackSoon(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{400 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := &slow{delay: func(op string) time.Duration {
				if op == "acquire" {
					return late
				}
				return time.Millisecond
			}}
			d := NewDesk(call.New(s, clock.New(), tasks.New()))
			c := d.New("n")
			r := d.Acquire(t.Context(), c, wish(30*time.Second), 0, d.Port.Clock.Read(), 300*time.Millisecond)
			if !r.Meaning().Open() {
				t.Fatalf("%s: %v", late, r.Err)
			}
			d.Clean(c, c.Drop(r.Now.Awake()))
			began := time.Now()
			time.Sleep(late + time.Second)
			if owner, takes, _ := s.seen(); owner != "" || takes == 0 {
				t.Errorf("%s: taken %d times, owned by %q", late, takes, owner)
			}
			err := d.Port.Tasks.Wait(t.Context())
			if _, _, releases := s.seen(); err != nil || releases > 80 {
				t.Errorf("%s: %v, %d releases in %s", late, err, releases, time.Since(began))
			}
		})
	}
}
