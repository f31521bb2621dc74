package redislock

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
)

// Looks may arrive in another order than they were sent in. The first one here may be granted the name by whoever frees
// it; the last one may not.
func TestTheNoteOfAnOlderLookNeverReplacesANewerOne(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: servers.Redis(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	for what, sent := range map[string][]int{"in order": {1, 2}, "in another order": {2, 1}} {
		s := New(rdb)
		held := driver.Claim{Name: what, Token: strings.Repeat("h", 22), TTL: time.Minute}
		c := driver.Claim{Name: what, Token: strings.Repeat("w", 22), TTL: time.Minute}
		if _, err := s.Acquire(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		notes := map[int]string{
			1: strings.Join([]string{"1", "NONCE", fencesOf(c), lives(c), owned(c)}, " "),
			2: "2" + magic + "label",
		}
		for _, n := range sent {
			if reply, err := s.run(t.Context(), s.question(ranked.Claim{Claim: c}, notes[n])); err != nil {
				t.Fatalf("%v, %v", reply, err)
			}
		}
		if err := s.Release(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		if err := s.Renew(t.Context(), []driver.Claim{c})[0]; err == nil {
			t.Errorf("%s: it was granted what it does not ask for any more", what)
		}
	}
}
