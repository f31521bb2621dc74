package call

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
)

// fake is a driver that does what its functions say.
type fake struct {
	driver.Driver
	can   driver.Capabilities
	does  func(context.Context, driver.Claim) (driver.Grant, error)
	renew func(context.Context, []driver.Claim) []error
}

func (f *fake) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return f.does(ctx, c)
}
func (f *fake) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) { return f.does(ctx, c) }
func (f *fake) Release(ctx context.Context, c driver.Claim) error {
	_, err := f.does(ctx, c)
	return err
}
func (f *fake) Renew(ctx context.Context, c []driver.Claim) []error { return f.renew(ctx, c) }
func (f *fake) Capabilities() driver.Capabilities                   { return f.can }

func (f *fake) port() *Port { return New(f, clock.New(), tasks.New()) }

// tried sends a command until its outcome is known, or a second is over.
func (p *Port) tried(ctx context.Context) (r Reply) {
	r.Now = p.Clock.Read()
	tries := p.Tries(r.Now, time.Second)
	for within := tries.First(ctx); within > 0; within = tries.Next(ctx, &r) {
		r = p.Send(ctx, Acquire, driver.Claim{}, r.Now, within, nil)
	}
	return r
}

type owner chan Reply

func (o owner) Late(_ Op, r Reply) { o <- r }

func TestALateOutcomeGoesToItsOwner(t *testing.T) {
	t.Parallel()
	for _, op := range []Op{Acquire, Wait, Release} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{does: func(context.Context, driver.Claim) (driver.Grant, error) {
				time.Sleep(time.Minute) // and it ignores its context
				return driver.Grant{Fence: 7}, nil
			}}
			p, late := f.port(), make(owner, 1)
			began := time.Now()
			r := p.Send(t.Context(), op, driver.Claim{}, p.Clock.Read(), time.Second, late)
			bound := time.Second
			if op == Wait {
				bound = 2 * time.Second
			}
			if !errors.Is(r.Err, ErrNoAnswer) || time.Since(began) != bound || p.hung.Load() != 1 {
				t.Errorf("op %d: %v after %s, %d hang", op, r.Err, time.Since(began), p.hung.Load())
			}
			if r := <-late; r.Err != nil || time.Since(began) != time.Minute || p.hung.Load() != 0 {
				t.Errorf("op %d: late: %v after %s", op, r.Err, time.Since(began))
			}
			if err := p.Tasks.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnAnswerAtTheVeryEndOfAWaitIsHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{does: func(ctx context.Context, _ driver.Claim) (driver.Grant, error) {
			<-ctx.Done()
			time.Sleep(grace + time.Millisecond)
			return driver.Grant{}, &driver.Held{}
		}}
		p := f.port()
		r := p.Send(t.Context(), Wait, driver.Claim{}, p.Clock.Read(), time.Second, nil)
		if r.Meaning().Kind != driver.HeldBy {
			t.Error(r.Err)
		}
		broken, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, cancel)
		if r = p.Send(broken, Wait, driver.Claim{}, p.Clock.Read(), time.Second, nil); !errors.Is(r.Err, ErrNoAnswer) {
			t.Error("broken off:", r.Err)
		}
		_ = p.Tasks.Wait(t.Context())
	})
}

func TestAPanicIsAnOpenOutcomeOnWhateverGoroutine(t *testing.T) {
	t.Parallel()
	for _, punctual := range []bool{false, true} {
		var p *Port
		f := &fake{
			can: driver.Capabilities{Punctual: punctual},
			does: func(context.Context, driver.Claim) (driver.Grant, error) {
				if apart := p.Tasks.Count() > 0; apart == punctual { // fallback relies on it
					t.Errorf("punctual: %t, and on a goroutine of its own: %t", punctual, apart)
				}
				panic("boom")
			},
			renew: func(context.Context, []driver.Claim) []error { panic("boom") },
		}
		p = f.port()
		for _, op := range []Op{Acquire, Wait, Release} {
			r := p.Send(context.Background(), op, driver.Claim{}, p.Clock.Read(), time.Second, nil)
			if _, ok := errors.AsType[*Panic](r.Err); !ok || !r.Meaning().Open() {
				t.Errorf("op %d: %v", op, r.Err)
			}
		}
		if errs := p.Renew(make([]driver.Claim, 2), time.Second); len(errs) != 2 || !driver.Explain(errs[1]).Open() {
			t.Error(errs)
		}
	}
}

func TestACommandIsSentAgainWhileItsOutcomeIsOpen(t *testing.T) {
	t.Parallel()
	broken, refused := errors.New("broken"), driver.Refused(errors.New("wrong password"))
	for what, row := range map[string]struct {
		outcomes []error // in order; the last one for all that follow
		sends    int
		want     error
	}{
		"answered at once":      {[]error{nil}, 1, nil},
		"answered later":        {[]error{broken, driver.ErrNotSent, nil}, 3, nil},
		"never":                 {[]error{broken}, maxSends, broken},
		"refused":               {[]error{refused}, 1, refused},
		"silence after a word":  {[]error{broken, driver.ErrCannotAnswer}, maxSends, broken},
		"held, after a silence": {[]error{driver.ErrCannotAnswer, driver.ErrNotOwner}, 2, driver.ErrNotOwner},
	} {
		synctest.Test(t, func(t *testing.T) {
			sends := 0
			f := &fake{can: driver.Capabilities{Punctual: true}, does: func(context.Context, driver.Claim) (driver.Grant, error) {
				sends++
				return driver.Grant{}, row.outcomes[min(sends, len(row.outcomes))-1]
			}}
			if r := f.port().tried(t.Context()); sends != row.sends || !errors.Is(r.Err, row.want) {
				t.Errorf("%s: %v after %d", what, r.Err, sends)
			}
		})
	}
}

func TestTheTriesOfACommandKeepItsBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{can: driver.Capabilities{Punctual: true}, does: func(ctx context.Context, _ driver.Claim) (driver.Grant, error) {
			<-ctx.Done()
			return driver.Grant{}, ctx.Err()
		}}
		p, began := f.port(), time.Now()
		p.tried(t.Context())
		if took := time.Since(began); took > time.Second || took < 900*time.Millisecond {
			t.Errorf("took %s", took)
		}
		for punctual, want := range map[bool]time.Duration{true: quickPatience, false: time.Second / 2} { // which can be left at any time
			p.Can.Punctual = punctual
			p.quick.Store(int64(clock.Never))
			tries := p.Tries(p.Clock.Read(), time.Second)
			if within := tries.First(t.Context()); within != want {
				t.Errorf("punctual: %t, and the first time takes %s", punctual, within)
			}
		}
	})
}

func TestAGrantCountsFromWhenItsDriverHasAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{can: driver.Capabilities{Punctual: true}, does: func(context.Context, driver.Claim) (g driver.Grant, err error) {
			time.Sleep(time.Second)
			g.Asked = time.Now()
			time.Sleep(time.Second)
			return g, nil
		}}
		p := f.port()
		now := p.Clock.Read()
		r := p.Send(t.Context(), Acquire, driver.Claim{}, now, time.Minute, nil)
		if r.Asked.Since(now) != time.Second || r.Now.Since(now) != 2*time.Second {
			t.Errorf("asked after %s, now after %s", r.Asked.Since(now), r.Now.Since(now))
		}
		if p.Inline(t.Context(), r.Now.Awake()) {
			t.Error("who answers after a second counts as quick")
		}
	})
}
