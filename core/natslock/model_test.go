package natslock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// both are the Stores of two processes, and the model that they have to agree with.
type both struct {
	t      *testing.T
	round  int // its names are its own
	rand   *rand.Rand
	stores []inspected
	model  inspected
	claims []driver.Claim // those that were granted last, whatever became of them
	made   int
	fences map[string]uint64 // the largest one of each name
	writes map[string]uint64 // of its exclusive tenures
}

// inspected is what both are.
type inspected interface {
	driver.Driver
	inspect.Inspector
}

// draw makes a new claim.
func (b *both) draw() driver.Claim {
	b.made++
	c := driver.Claim{
		Name: fmt.Sprintf("name-%d-%d", b.round, b.rand.IntN(2)), Token: fmt.Sprint("token-", b.made), Label: fmt.Sprint("label-", b.made), TTL: time.Hour,
	}
	switch b.rand.IntN(6) {
	case 0, 1:
		c.Limit = driver.Readers
	case 2, 3:
		c.Limit = 2 + b.rand.IntN(2)
	case 4:
		c.Handoff = fmt.Sprint("handoff-000000000000", b.rand.IntN(2))
	}
	if b.rand.IntN(8) == 0 {
		c.Scope, c.Dedup = fmt.Sprint("scope-", b.rand.IntN(8)), time.Hour
	}
	return c
}

// answer is what an error says, except for what takes time.
func answer(err error) string {
	if held, ok := errors.AsType[*driver.Held](err); ok {
		return fmt.Sprintf("held by %q, exactly %t, limit %d", held.Label, held.Exact, held.Limit)
	}
	if done, ok := errors.AsType[*driver.Duplicate](err); ok {
		return "done by " + done.Label
	}
	return fmt.Sprint(err)
}

// step does the same with the model and with one of the Stores.
func (b *both) step() (what, want, got string) {
	store, c := b.stores[b.rand.IntN(len(b.stores))], b.draw()
	old := b.rand.IntN(3) > 0 && len(b.claims) > 0
	if old {
		c = b.claims[b.rand.IntN(len(b.claims))]
	}
	ctx := b.t.Context()
	switch op := b.rand.IntN(10); {
	case !old || op < 2:
		m, errModel := b.model.Acquire(ctx, c)
		if errModel == nil {
			b.claims = append(b.claims[max(0, len(b.claims)-12):], c)
		}
		g, err := store.Acquire(ctx, c)
		if err == nil && g.Fence > 0 {
			b.fenced(c, g.Fence)
		}
		what, want, got = "acquire", fmt.Sprint(answer(errModel), m.Limit, m.Fence > 0), fmt.Sprint(answer(err), g.Limit, g.Fence > 0)
	case op < 3:
		all := slices.Concat(b.claims, b.claims[:1])
		what, want, got = "renew all", fmt.Sprint(b.model.Renew(ctx, all)), fmt.Sprint(store.Renew(ctx, all))
	case op < 6:
		what, want, got = "evict", b.evict(b.model, c), b.evict(store, c)
	default:
		if c.Exclusive() && (c.Handoff != "" || op < 8) {
			c.Keep = time.Hour
		}
		what, want, got = "release", answer(b.model.Release(ctx, c)), answer(store.Release(ctx, c))
	}
	for _, i := range []*inspected{&b.model, &store} {
		says := " and then " + b.shown(*i, c.Name)
		if *i == b.model {
			want += says
		} else {
			got += says
		}
	}
	return fmt.Sprintf("%s %+v", what, struct {
		Token, Name, Handoff string
		Limit                int
		Keep, Dedup          time.Duration
	}{c.Token, c.Name, c.Handoff, c.Limit, c.Keep, c.Dedup}), want, got
}

// fenced checks the fence of a grant.
func (b *both) fenced(c driver.Claim, fence uint64) {
	b.t.Helper()
	last := b.writes[c.Name]
	if c.Exclusive() {
		last = b.fences[c.Name]
		b.writes[c.Name] = max(b.writes[c.Name], fence)
	}
	if fence < last { // the same again, if it was granted already
		b.t.Errorf("%s %s has the fence %d after %d", c.Name, c.Token, fence, last)
	}
	b.fences[c.Name] = max(b.fences[c.Name], fence)
}

// shown is what is told of who has a name.
func (b *both) shown(i inspected, name string) string {
	info, err := i.Inspect(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	labels := []string{info.Label}
	for _, h := range info.Holders {
		labels = append(labels, fmt.Sprint(h.Label, " ", h.Limit))
	}
	slices.Sort(labels)
	return fmt.Sprintf("%s %t %d %q", info.Kind, info.Kept, info.Limit, labels)
}

// evict takes the name from the holder with c's label, whoever left it.
func (b *both) evict(i inspected, c driver.Claim) string {
	info, err := i.Inspect(b.t.Context(), c.Name)
	if err != nil {
		b.t.Fatal(err)
	}
	handle := "0123456789abcdef"
	if info.Label == c.Label && info.Handle != "" {
		handle = info.Handle
	}
	for _, one := range info.Holders {
		if one.Label == c.Label {
			handle = one.Handle
		}
	}
	err = i.Evict(b.t.Context(), c.Name, handle)
	if _, held := errors.AsType[*driver.Held](err); held {
		return "held by others"
	}
	return fmt.Sprint(err)
}

// Random steps of claims of all kinds, each by one of two processes, are answered as memory answers them.
func TestAllKindsOfClaimsAreAnsweredAsMemoryAnswersThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	known := uint64(16848369816870366716) // renews a writer in the command that makes it a reader
	for round, seed := range []uint64{known, rand.Uint64(), rand.Uint64()} {
		b := &both{
			t: t, round: round, rand: rand.New(rand.NewPCG(seed, 0)), model: memlock.New(), stores: []inspected{w.near, w.far},
			fences: make(map[string]uint64), writes: make(map[string]uint64),
		}
		var done []string
		for range 120 {
			what, want, got := b.step()
			done = append(done, what+": "+want)
			if got != want {
				for _, line := range done[max(0, len(done)-12):] {
					t.Log(line)
				}
				t.Fatalf("seed %d, step %d: but the answer is %s", seed, len(done), got)
			}
		}
	}
}
