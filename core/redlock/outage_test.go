package redlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// says is a node that answers everything with the same error.
type says struct {
	driver.Driver
	err error
}

func (s says) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	return driver.Grant{}, s.err
}

func (s says) Renew(context.Context, []driver.Claim) []error { return []error{s.err} }

func TestAQuorumCannotAnswerOnlyIfNoNodeDoes(t *testing.T) {
	t.Parallel()
	denied := errors.New("NOPERM")
	for name, c := range map[string]struct {
		nodes  [3]error // nil is a node that works
		outage bool
	}{
		"all are down":                 {[3]error{driver.ErrCannotAnswer, driver.ErrCannotAnswer, driver.ErrCannotAnswer}, true},
		"most are down":                {[3]error{driver.ErrCannotAnswer, nil, driver.ErrCannotAnswer}, true},
		"one forbids, others are down": {[3]error{driver.ErrCannotAnswer, denied, driver.ErrCannotAnswer}, false},
		"one is down, others forbid":   {[3]error{denied, driver.ErrCannotAnswer, denied}, false},
		"one has another holder":       {[3]error{driver.ErrCannotAnswer, &driver.Held{}, driver.ErrCannotAnswer}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var nodes []driver.Driver
				for _, err := range c.nodes {
					var node driver.Driver = memlock.New()
					if err != nil {
						node = says{node, err}
					}
					nodes = append(nodes, node)
				}
				store := redlock.New(nodes)
				claim := driver.Claim{Name: "name", Token: "token", TTL: time.Minute}
				_, err := store.Acquire(t.Context(), claim)
				if err == nil || driver.Explain(err).Nobody != c.outage {
					t.Errorf("acquire: %v", err)
				}
				for _, said := range c.nodes {
					if _, held := errors.AsType[*driver.Held](err); said != nil && !held && !strings.Contains(err.Error(), said.Error()) {
						t.Errorf("%v does not say %q", err, said)
					}
				}
				claim.TTL = 0
				if err := store.Renew(t.Context(), []driver.Claim{claim})[0]; driver.Explain(err).Nobody && !c.outage && errors.Is(c.nodes[1], denied) {
					t.Errorf("a probe: %v", err)
				}
				time.Sleep(time.Minute)
				ok(t, store.Close(t.Context()))
			})
		})
	}
}

func TestAnErrorSaysWhichNodesItIsOfInOneLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		denied := errors.New("denied")
		store := redlock.New([]driver.Driver{memlock.New(), located{says{memlock.New(), denied}}, says{memlock.New(), denied}})
		_, err := store.Acquire(t.Context(), driver.Claim{Name: "name", Token: "token", TTL: time.Minute})
		if err == nil || !strings.Contains(err.Error(), "node 1 at host:1: denied; node 2: denied") && !strings.Contains(err.Error(), "node 2: denied; node 1 at host:1: denied") {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		ok(t, store.Close(t.Context()))
	})
}

// located is a node that knows where it is.
type located struct{ driver.Driver }

func (located) Capabilities() driver.Capabilities { return driver.Capabilities{Location: "host:1"} }
