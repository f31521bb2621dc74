package zklock

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

func open(t *testing.T) *Store {
	t.Helper()
	session := new(Session)
	conn, _, err := zk.Connect([]string{servers.ZooKeeper(t).Addr()}, 10*time.Second,
		zk.WithDialer(session.Dial), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return New(conn, session)
}

// The client keeps every watch that it was asked for until that fires, which may take as long
// as a lease lasts.
func TestThoseWhoWaitForTheSameOneShareAWatch(t *testing.T) {
	t.Parallel()
	s := open(t)
	conn := s.conn
	create := func() string {
		path, err := conn.Create("/x-", nil, zk.FlagEphemeralSequential, s.acl)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	trip := &trip{Store: s, ctx: t.Context()}
	watch := func(path string) <-chan zk.Event {
		fires, err := trip.watch(path)
		if err != nil {
			t.Fatal(err)
		}
		return fires
	}
	first, second := create(), create()
	fires := watch(first)
	if watch(first) != fires {
		t.Error("a second watch")
	}
	if err := conn.Delete(first, -1); err != nil {
		t.Fatal(err)
	}
	for range 2 { // whoever waits
		<-fires
	}
	watch(second)
	if len(s.watches) != 1 {
		t.Errorf("%d watches are remembered", len(s.watches))
	}
}

func TestWhatIsBeingDeletedIsNotRenewed(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := driver.Claim{Name: "name", Token: "token", TTL: 5 * time.Second}
	if _, err := s.Acquire(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	n, _ := s.owned(c)
	s.mu.Lock()
	n.ending = true
	s.mu.Unlock()
	if err := s.Renew(t.Context(), []driver.Claim{c})[0]; !errors.Is(err, driver.ErrNotOwner) {
		t.Errorf("renewal: %v", err)
	}
}

func TestSeatsAreInTheOrderOfTheirCreation(t *testing.T) {
	t.Parallel()
	for _, want := range [][]string{
		{"write-ff-0000000001", "write-00-0000000002", "write-aa-0000000010"},
		{"_c_aa-lock-0000000001", "write-aa-0000000002"},
		{"write-ff-2147483646", "write-ee-2147483647", "write-aa--2147483648", "write-00--2147483647"},
		{"write-aa--000000002", "write-aa--000000001", "write-aa-0000000000", "write-aa-0000000001"},
		{"a", "b", "write-aa-0000000000"},
		{"leases", "write-aa-0000000000"},
	} {
		got := slices.Clone(want)
		slices.Reverse(got)
		slices.SortFunc(got, before)
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
}

func TestAWriterWaitsForTheOneBeforeItAndAReaderForTheLastThatIsNone(t *testing.T) {
	t.Parallel()
	const r1, r2, w3, r4, w5, r6 = "read-a-0000000001", "read-b-0000000002", "write-c-0000000003",
		"read-d-0000000004", "write-e-0000000005", "read-f-0000000006"
	line := []string{r1, r2, w3, r4, w5, r6}
	for at, want := range []string{"", "", r2, w3, r4, w5} {
		if got := blocker(line, at); got != want {
			t.Errorf("%s waits for %q, not for %q", line[at], got, want)
		}
	}
	const foreign = "_c_x-__READ__0000000001"
	if got := blocker([]string{foreign, r2}, 1); got != foreign {
		t.Errorf("a reader behind other software waits for %q", got)
	}
	if turn(line, "read-z-0000000009") {
		t.Error("it is the turn of one who does not stand in line")
	}
	for _, c := range []struct {
		line           []string
		reader, writer bool
		mayOwn         int
	}{
		{nil, true, true, 0},
		{[]string{r1, r2}, true, false, 2},
		{[]string{r1, r2, w3, r4}, false, false, 2},
		{[]string{w3, r4}, false, false, 1},
		{[]string{foreign, r2}, false, false, 1},
	} {
		reader, writer := joins(c.line, driver.Claim{Shared: true}), joins(c.line, driver.Claim{})
		if n := len(owners(c.line)); reader != c.reader || writer != c.writer || n != c.mayOwn {
			t.Errorf("%q: a reader joins: %t, a writer: %t, %d may own the name", c.line, reader, writer, n)
		}
	}
}

func TestNothingIsTriedForEverOnAConnectionThatWasClosed(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := driver.Claim{Name: "name", Token: "token", TTL: time.Second}
	if _, err := s.Acquire(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s.conn.Close()
	for range 600 {
		s.mu.Lock()
		left := len(s.nodes)
		s.mu.Unlock()
		if left == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the node is still to be deleted")
}
