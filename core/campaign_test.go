package core_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// leader is one process that campaigns.
type leader struct {
	locks  *core.Locker
	rounds atomic.Int64 // how often its work was begun
	result chan error
	resign chan error // what its work returns
}

// elect starts a process whose work goes on until its context ends or it is told to resign.
// At every moment at most one of those that share reigning works.
func (b *bench) elect(ctx context.Context, locks *core.Locker, reigning *atomic.Int64, opts ...core.Option) *leader {
	b.Helper()
	p := &leader{locks: locks, result: make(chan error, 1), resign: make(chan error, 1)}
	go func() {
		p.result <- locks.Campaign(ctx, "scheduler", func(ctx context.Context) error {
			p.rounds.Add(1)
			if n := reigning.Add(1); n != 1 {
				b.Errorf("%d leaders at once", n)
			}
			defer reigning.Add(-1)
			select {
			case <-ctx.Done():
				return ctx.Err()
			case err := <-p.resign:
				return err
			}
		}, opts...)
	}()
	synctest.Wait()
	return p
}

func TestACampaignHasOneLeaderAndTheNextInLineFollowsAResignationAtOnce(t *testing.T) {
	t.Parallel()
	for _, verdict := range []error{nil, errWork, context.Canceled} {
		virtual(t, func(b *bench) {
			var reigning atomic.Int64
			first := b.elect(b.Context(), b.locks, &reigning)
			second := b.elect(b.Context(), b.other(), &reigning)
			third := b.elect(b.Context(), b.other(), &reigning)
			time.Sleep(10 * ttl)
			if n := second.rounds.Load() + third.rounds.Load(); n != 0 {
				b.Errorf("%d others worked", n)
			}
			b.took(0, 0, func() {
				first.resign <- verdict
				if err := <-first.result; err != verdict { //nolint:errorlint // as it is
					b.Errorf("%v, not %v as it is", err, verdict)
				}
				synctest.Wait()
			})
			if second.rounds.Load() != 1 || third.rounds.Load() != 0 || reigning.Load() != 1 {
				b.Error("the one who came second does not lead")
			}
			second.resigns(b)
			third.resigns(b)
		})
	}
}

// resigns has p's work return, and its campaign with it.
func (p *leader) resigns(b *bench) {
	b.Helper()
	p.resign <- nil
	b.ok(<-p.result)
}

func TestALeaderThatLostItsLeaseCampaignsAgain(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var reigning atomic.Int64
		first := b.elect(b.Context(), b.locks, &reigning)
		second := b.elect(b.Context(), b.other(), &reigning)
		b.link.All(lab.RequestLost)
		time.Sleep(ttl + time.Second)
		if first.rounds.Load() != 1 || second.rounds.Load() != 1 || reigning.Load() != 1 {
			b.Errorf("after the loss: rounds %d and %d", first.rounds.Load(), second.rounds.Load())
		}
		time.Sleep(10 * ttl) // ErrUnavailable, again and again
		b.link.Heal()
		time.Sleep(ttl)
		second.resigns(b)
		b.eventually("the first leads again", func() bool { return first.rounds.Load() == 2 })
		first.resigns(b)
	})
}

func TestACampaignGoesOnAfterALossAndAPauseWhateverItsWorkReturned(t *testing.T) {
	t.Parallel()
	for _, verdict := range []error{nil, errWork} {
		virtual(t, func(b *bench) {
			rounds, ended := 0, time.Now()
			b.ok(b.locks.Campaign(b.Context(), "scheduler", func(ctx context.Context) error {
				if pause := time.Since(ended); rounds > 0 && (pause < time.Second*3/4 || pause > time.Second) {
					b.Errorf("it paused for %s", pause)
				}
				if rounds++; rounds == 3 {
					return nil
				}
				<-ctx.Done()
				b.lostBecause(context.Cause(ctx), "scheduler", core.ReasonMaxHold)
				ended = time.Now()
				return verdict
			}, core.WithMaxHold(time.Minute)))
			if rounds != 3 {
				b.Errorf("%d rounds", rounds)
			}
		})
	}
}

func TestTheEndOfItsContextEndsACampaign(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var reigning atomic.Int64
		ctx, cancel := context.WithCancel(b.Context())
		first := b.elect(ctx, b.locks, &reigning)
		second := b.elect(ctx, b.other(), &reigning)
		cut := b.other()
		cancel()
		b.is(<-first.result, context.Canceled)
		b.is(<-second.result, context.Canceled, core.ErrHeld)
		b.is(cut.Campaign(ctx, "scheduler", func(context.Context) error { panic("ran") }), context.Canceled)
		synctest.Wait() // the second leaves the line in the background
		b.ok(b.acquire(cut, "scheduler").Release(b.Context()))
	})
}

func TestNothingKeepsACampaignInItsPause(t *testing.T) {
	t.Parallel()
	for want, end := range map[error]func(*bench, context.CancelFunc){
		core.ErrClosed:   func(b *bench, _ context.CancelFunc) { b.ok(b.locks.Close(b.Context())) },
		context.Canceled: func(_ *bench, cancel context.CancelFunc) { cancel() },
	} {
		virtual(t, func(b *bench) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			lost := make(chan struct{})
			result := b.begin(func() error {
				return b.locks.Campaign(ctx, "scheduler", func(ctx context.Context) error {
					<-ctx.Done()
					close(lost)
					return nil
				}, core.WithMaxHold(time.Minute))
			})
			<-lost
			synctest.Wait()
			b.took(0, 0, func() {
				end(b, cancel)
				b.is(<-result, want)
			})
		})
	}
}

func TestACampaignThatCannotWorkIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		work := func(context.Context) error { panic("ran") }
		for _, err := range []error{
			b.locks.Campaign(b.Context(), "name", nil), b.locks.Campaign(b.Context(), "a name", work),
			b.locks.Campaign(b.Context(), "name", work, core.WithTTL(-1)), b.locks.Campaign(b.Context(), "name", work, nil),
			(*core.Locker)(nil).Campaign(b.Context(), "name", work),
		} {
			b.is(err, core.ErrInvalid)
		}
		b.sent(0)
	})
}

func TestACampaignWaitsWhateverTheLockersBudget(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.other(), "scheduler")
		time.AfterFunc(time.Hour/2, func() { b.ok(x.Release(b.Context())) })
		b.took(time.Hour/2, 0, func() {
			b.ok(b.locks.Campaign(b.Context(), "scheduler", noWork, core.WithWait(0)))
		})
	}, core.WithWait(0))
}

func TestACampaignForWorkThatIsDoneEndsAsDone(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.ok(b.locks.Campaign(b.Context(), "migrate", noWork))
		again := func(context.Context) error { panic("ran") }
		b.is(b.other().Campaign(b.Context(), "migrate", again, core.WithDedup(time.Hour)), core.ErrDuplicate)
	}, core.WithDedup(time.Hour))
}

func TestAPanicOfALeaderPassesThroughAfterItsRelease(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(){"panic": func() { panic(errWork) }, "Goexit": runtime.Goexit} {
		virtual(t, func(b *bench) {
			done := make(chan any)
			go func() {
				defer close(done)
				defer func() { done <- recover() }()
				_ = b.locks.Campaign(b.Context(), "scheduler", func(context.Context) error { end(); return nil })
				b.Error("it returned")
			}()
			if r := <-done; (r == errWork) != (what == "panic") { //nolint:errorlint // the same value
				b.Errorf("%s: recovered %v", what, r)
			}
			<-done
			b.ok(b.acquire(b.other(), "scheduler").Release(b.Context()))
		})
	}
}
