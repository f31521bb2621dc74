package zklock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
)

func TestAQueueThatIsNotOursStays(t *testing.T) {
	t.Parallel()
	s := open(t)
	ok(t, (&call{Store: s, ctx: t.Context()}).makeDir("name"))
	_, err := s.conn.Create("/holdfast/foreign", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)) // by an operator, say
	ok(t, err)
	for name, stays := range map[string]bool{"name": false, "foreign": true} {
		take(t, s, claim(name, "token"))
		ok(t, s.Release(t.Context(), claim(name, "token")))
		ok(t, s.Close(t.Context()))
		if there, _, err := s.conn.Exists("/holdfast/" + name); there != stays || err != nil {
			t.Errorf("%s is there: %t, %v", name, there, err)
		}
	}
}

// Between a look at a queue and the znode in it, the queue may go: all the time, here.
func TestAQueueThatGoesBeforeANewcomerIsInItIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, stop := context.WithCancel(t.Context())
	var deleting sync.WaitGroup
	deleting.Go(func() {
		for ctx.Err() == nil {
			err := s.conn.Delete("/holdfast/name", -1)
			if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNotEmpty) {
				t.Error(err)
			}
		}
	})
	defer deleting.Wait()
	defer stop()
	for i := range 50 {
		c := claim("name", fmt.Sprint("token ", i))
		eventually(t, "a grant", func() bool {
			_, err := s.Acquire(t.Context(), c)
			return err == nil
		})
		ok(t, s.Release(t.Context(), c))
	}
}
