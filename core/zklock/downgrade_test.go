package zklock

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
)

// writes grants c, and returns it as its writer is made a reader.
func writes(t *testing.T, s *Store) (c, downgraded driver.Claim) {
	t.Helper()
	c = driver.Claim{Name: "name", Token: "token", TTL: 3 * time.Second}
	g, err := s.Acquire(t.Context(), c)
	must(t, err)
	downgraded = c
	downgraded.Shared, downgraded.Downgraded, downgraded.Fence = true, true, g.Fence
	return c, downgraded
}

// beside is another Store at the server of s, which is connected, with a session of its own.
func beside(t *testing.T, s *Store) *Store {
	t.Helper()
	session := new(Session)
	conn, _, err := zk.Connect([]string{s.conn.Server()}, 10*time.Second, zk.WithDialer(session.Dial), zk.WithLogInfo(false))
	must(t, err)
	t.Cleanup(conn.Close)
	return New(conn, session)
}

// Its znode has gone, and that of the reader is there.
func TestARenewalOfAWriterThatIsLateTakesNothingFromTheReader(t *testing.T) {
	t.Parallel()
	s := open(t)
	c, reader := writes(t, s)
	n, path := s.owned(c)
	seat := n.seat
	trip, errs := &trip{Store: s, ctx: t.Context()}, make([]error, 1)
	for _, answered := range []bool{true, false} {
		must(t, s.Renew(t.Context(), []driver.Claim{reader})[0])
		if !answered {
			s.mu.Lock()
			n.seat, n.doubt = seat, true
			s.mu.Unlock()
		}
		trip.ask([]renewal{{claim: c, node: n, path: path}}, errs)
		s.mu.Lock()
		left := time.Until(n.until)
		s.mu.Unlock()
		if !errors.Is(errs[0], driver.ErrNotOwner) || left <= 0 {
			t.Errorf("a late renewal: %v; what is left is %s", errs[0], left)
		}
	}
	must(t, s.Renew(t.Context(), []driver.Claim{reader})[0])
	if there, _ := s.owned(reader); there != n {
		t.Error("the Store has forgotten it: nobody deletes it at its time")
	}
}

// A znode that another Store made would end with the session of that one.
func TestOnlyTheStoreThatAcquiredALeaseDowngradesIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, reader := writes(t, s)
	other := beside(t, s)
	if err := other.Renew(t.Context(), []driver.Claim{reader})[0]; !errors.Is(err, errElsewhere) || !errors.Is(err, driver.ErrNotSent) {
		t.Error(err)
	}
	verify := reader
	verify.TTL = 0
	must(t, other.Renew(t.Context(), []driver.Claim{verify})[0])
	must(t, s.Renew(t.Context(), []driver.Claim{reader})[0])
	must(t, other.Renew(t.Context(), []driver.Claim{reader})[0])
	must(t, other.Release(t.Context(), reader))
}

func TestWhoEndsAWriterThatBecomesAReaderMeanwhileEndsTheReader(t *testing.T) {
	t.Parallel()
	s := open(t)
	_, reader := writes(t, s)
	other := &trip{Store: beside(t, s), ctx: t.Context()}
	path, err := other.find(s.dir("name"), reader)
	must(t, err)
	must(t, s.Renew(t.Context(), []driver.Claim{reader})[0])
	must(t, other.end(path, 0))
	if err := s.Renew(t.Context(), []driver.Claim{reader})[0]; !errors.Is(err, driver.ErrNotOwner) {
		t.Error(err)
	}
}
