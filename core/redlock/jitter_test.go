package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// jittery is a node whose requests and answers take any time up to most, a few of them ten times as long. So they overtake each other.
type jittery struct {
	*memlock.Store
	most time.Duration
}

func (j jittery) lag() {
	d := rand.N(j.most)
	if rand.N(5) == 0 {
		d *= 10 // one packet was lost
	}
	time.Sleep(d)
}

func (j jittery) AcquireRanked(ctx context.Context, c ranked.Claim) (driver.Grant, error) {
	defer j.lag()
	j.lag()
	return j.Store.AcquireRanked(context.WithoutCancel(ctx), c)
}

func (j jittery) Rank(ctx context.Context, name string) (uint64, error) {
	defer j.lag()
	j.lag()
	return j.Store.Rank(context.WithoutCancel(ctx), name)
}

func (j jittery) Renew(ctx context.Context, claims []driver.Claim) []error {
	defer j.lag()
	j.lag()
	return j.Store.Renew(context.WithoutCancel(ctx), claims)
}

func (j jittery) Release(ctx context.Context, c driver.Claim) error {
	defer j.lag()
	j.lag()
	return j.Store.Release(context.WithoutCancel(ctx), c)
}

func (j jittery) WaitRanked(ctx context.Context, c ranked.Claim) error {
	defer j.lag()
	j.lag()
	return j.Store.WaitRanked(ctx, c)
}

// jitter is a process whose way to every node is like that.
func (m *mesh) jitter(most time.Duration, opts ...redlock.Option) *process {
	nodes := make([]driver.Driver, len(m.stores))
	for i, s := range m.stores {
		nodes[i] = jittery{s, most}
	}
	return m.over(nodes, opts...)
}

// A release that is confirmed frees the name, whatever of earlier commands is on its way still. Who was refused before that,
// and asks again, is not told of its own first attempt.
func TestNobodyIsToldHeldAfterAConfirmedReleaseWhereMessagesOvertakeEachOther(t *testing.T) {
	t.Parallel()
	for what, opts := range map[string][]redlock.Option{"plain": nil, "with a fence": {redlock.WithFence()}} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inMesh(t, 5, func(t *testing.T, m *mesh) {
				a, b := m.jitter(4*time.Millisecond, opts...), m.jitter(4*time.Millisecond, opts...)
				for turn := range 500 {
					held, c := a.claim(fmt.Sprint("a", turn)), b.claim(fmt.Sprint("b", turn))
					_, err := a.store.Wait(short(t, ttl), held)
					ok(t, err)
					if turn%2 == 0 {
						isHeld(t, acquires(t, b, c))
					} else {
						if err := b.stands(c, 50*time.Millisecond); err == nil {
							t.Fatal("two holders")
						}
						_ = b.store.Release(t.Context(), c) // it leaves the queue, and owns nothing
					}
					ok(t, a.store.Release(t.Context(), held))
					c.Token += "again"
					if err := acquires(t, b, c); err != nil {
						t.Errorf("turn %d: %v", turn, err)
						continue
					}
					ok(t, b.store.Release(t.Context(), c))
				}
			})
		})
	}
}
