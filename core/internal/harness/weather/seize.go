//go:build linux

package weather

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/operate"
)

// operator is a Locker for those who look, and take names away.
func (r *run) operator() *core.Locker {
	store, hangUp := WorkerConfig{Service: r.Service, Servers: r.service.addrs, Life: admin}.open()
	r.tb.Cleanup(hangUp)
	locks, err := core.New(store)
	if err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(func() { _ = locks.Close(context.Background()) }) // it has no leases
	return locks
}

// seize has an operator look who has a name, and take it from him if it is still he, by his
// handle. Workers pass the name on meanwhile.
func (r *run) seize(ctx context.Context, f Fault) {
	random := rand.New(rand.NewPCG(r.Seed, uint64(f.At))) //nolint:gosec // G404, G115: to be repeated, not negative
	for end := time.Now().Add(f.For); time.Now().Before(end); {
		time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
		r.seizeOnce(ctx, random)
	}
}

func (r *run) seizeOnce(ctx context.Context, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, TTL/2)
	defer cancel()
	info, err := operate.New(r.locks).Inspect(ctx, seizedName)
	if err != nil || info.Handle == "" { // a fault of the server's, or nobody has it
		return
	}
	e := Event{Kind: Seized, Name: seizedName, Until: now()}
	time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
	e.Last = now()
	freed, err := operate.New(r.locks).ForceRelease(ctx, seizedName, info.Handle)
	e.At, e.Class, e.Error = now(), class(err), text(err)
	if err == nil && !freed {
		e.Class = "free"
	}
	r.log.write(e)
}
