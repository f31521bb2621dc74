package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// modelHours is how many virtual hours of each seed pass; HOLDFAST_MODEL_HOURS says otherwise.
const modelHours = 1

// Where turns are short in the model of turns, leases here are held for minutes, through many
// renewals, while links break now and then.
func TestHoursOfFaultsKeepOneHolderAndEveryCallBounded(t *testing.T) {
	t.Parallel()
	hours := modelHours
	if s := os.Getenv("HOLDFAST_MODEL_HOURS"); s != "" {
		var err error
		if hours, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	const seeds = 6
	var mu sync.Mutex
	granted, lost := 0, 0
	t.Cleanup(func() { // when all seeds are through
		t.Logf("%d virtual hours: %d grants, %d of them lost", seeds*hours, granted, lost)
		if lost == 0 || granted < 2*lost {
			t.Errorf("%d grants and %d losses: too few, or too many, to say anything", granted, lost)
		}
	})
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				m := &vigil{bench: b, until: time.Now().Add(time.Duration(hours) * time.Hour)}
				m.run(rand.New(rand.NewPCG(seed, 4)))
				mu.Lock()
				defer mu.Unlock()
				granted, lost = granted+m.granted, lost+m.lost
			})
		})
	}
}

// vigil is what some processes do through the hours.
type vigil struct {
	*bench
	until time.Time

	mu            sync.Mutex // protects the fields below
	holder        *core.Lease
	fence         uint64
	granted, lost int
}

func (v *vigil) run(rng *rand.Rand) {
	var all sync.WaitGroup
	for range 3 {
		link := lab.New(v.store)
		locks := v.locker(link)
		for range 2 {
			seed := rng.Uint64()
			all.Go(func() { v.work(locks, rand.New(rand.NewPCG(seed, 5))) })
		}
		seed := rng.Uint64()
		all.Go(func() { v.storm(link, rand.New(rand.NewPCG(seed, 6))) })
	}
	all.Wait()
}

// work takes the name and holds it for minutes, mostly for less than others care to wait.
func (v *vigil) work(locks *core.Locker, rng *rand.Rand) {
	for time.Now().Before(v.until) {
		patience := time.Duration(rng.IntN(int(10 * time.Minute)))
		ctx, cancel := context.WithTimeout(v.Context(), patience)
		began := time.Now()
		x, err := locks.Acquire(ctx, "name")
		cancel()
		if took := time.Since(began); took > patience+50*time.Millisecond {
			v.Errorf("Acquire took %v, with %v to go", took, patience)
		}
		switch {
		case err == nil:
			v.hold(x, time.Duration(rng.IntN(int(4*time.Minute))))
		case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, core.ErrUnavailable):
			v.Errorf("acquire: %v", err)
		}
		time.Sleep(time.Duration(rng.IntN(int(time.Minute))))
	}
}

func (v *vigil) hold(x *core.Lease, d time.Duration) {
	v.enter(x)
	select {
	case <-time.After(d):
	case <-x.Context().Done():
		if late := time.Since(x.ValidUntil()); late > time.Millisecond {
			v.Errorf("the context ended %v after trust", late)
		}
	}
	lost := x.Err() != nil
	v.mu.Lock()
	if v.holder == x {
		v.holder = nil
	}
	if lost {
		v.lost++
	}
	v.mu.Unlock()
	began := time.Now()
	if err := x.Release(v.Context()); err == nil && lost {
		v.Error("a lost lease was released")
	}
	if took := time.Since(began); took > bound+50*time.Millisecond {
		v.Errorf("Release took %v", took)
	}
}

func (v *vigil) enter(x *core.Lease) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.granted++
	if v.holder != nil && v.holder.Err() == nil {
		v.Errorf("%v and %v are both trusted", v.holder, x)
	}
	if x.Fence() <= v.fence {
		v.Errorf("fence %d after %d", x.Fence(), v.fence)
	}
	v.holder, v.fence = x, x.Fence()
}

// storm breaks a link now and then, for a moment or for longer than a lease lasts.
func (v *vigil) storm(link *lab.Net, rng *rand.Rand) {
	fates := []lab.Fate{lab.Refused, lab.RequestLost, lab.ReplyLost}
	for time.Now().Before(v.until) {
		time.Sleep(time.Duration(rng.IntN(int(4 * time.Minute))))
		if rng.IntN(3) == 0 {
			link.Delay(time.Duration(rng.IntN(int(time.Second))), time.Duration(rng.IntN(int(2*time.Second))))
		} else {
			link.All(fates[rng.IntN(len(fates))])
		}
		time.Sleep(time.Duration(rng.IntN(int(2 * ttl))))
		link.Delay(0, 0)
		link.Heal()
	}
}
