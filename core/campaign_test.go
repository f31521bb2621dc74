package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

func TestACampaignHasOneLeaderAndTheNextInLineFollowsAResignationAtOnce(t *testing.T) {
	t.Parallel()
	for _, verdict := range []error{nil, errWork, context.Canceled} {
		virtual(t, func(b *bench) {
			resign, terms := make(chan error), 0
			leads := func(context.Context) error { terms++; return <-resign }
			var campaigns []<-chan error
			for _, locks := range []*core.Locker{b.locks, b.other(), b.other()} {
				campaigns = append(campaigns, b.begin(func() error { return locks.Campaign(b.Context(), "scheduler", leads) }))
			}
			time.Sleep(10 * ttl)
			b.took(0, 0, func() {
				for before, result := range campaigns {
					if terms != before+1 {
						b.Errorf("%d have led, not %d", terms, before+1)
					}
					resign <- verdict
					if err := <-result; err != verdict { //nolint:errorlint // as it is
						b.Errorf("%v, not %v as it is", err, verdict)
					}
					synctest.Wait()
				}
			})
		})
	}
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

func TestACampaignWaitsWhateverTheLockersBudgetOrIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.is(b.locks.Campaign(b.Context(), "name", nil), core.ErrInvalid)
		b.is(b.locks.Campaign(b.Context(), "name", noWork, core.WithTTL(-1)), core.ErrInvalid)
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
