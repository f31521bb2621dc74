package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// bid is one token, from the first command that carries it until no command may carry it
// any more. It knows which commands' outcomes are still open, so that whatever they turn
// out to have granted is given back, and never while the token is in use.
//
// Many are kept at once, so it has no claim, but what makes one: what all of a call's tokens ask
// for is in the config.
type bid struct {
	root  *root
	cfg   *config
	name  string
	token string

	mu    sync.Mutex // protects the fields below
	phase bidPhase
	open  bool // a command may have acted, or may still act, without our knowing
	stray bool // such a command was answered while the release was under way
}

type bidPhase uint8

const (
	bidTrying bidPhase = iota // in an acquire
	bidOwned                  // in a tenure
	bidEnding                 // in the release of that tenure
	bidOver
)

func newBid(r *root, name string, c *config) *bid {
	return &bid{root: r, cfg: c, name: name, token: newToken()}
}

func (b *bid) claim() driver.Claim {
	c := b.cfg
	return driver.Claim{
		Name: b.name, Token: b.token, Label: c.label, TTL: c.lifetime(),
		Shared: c.shared, Limit: c.limit, Scope: c.scope, Dedup: c.dedup,
	}
}

// bound is that of one attempt, and of one release.
func (b *bid) bound() time.Duration { return b.cfg.bound() }

type reply struct {
	grant driver.Grant
	err   error
}

// attempt asks for the grant until it is answered, for no longer than bound: a command
// whose reply is lost is sent again with the same token. The instant is the one before the
// answered command was sent.
func (b *bid) attempt(ctx context.Context, bound time.Duration, c driver.Claim) (grant driver.Grant, asked instant, err error) {
	r := b.root
	err = r.persist(ctx, r.patience(ctx, bound), bound, outcomeOpen, func(ctx context.Context) error {
		asked = r.clock.read() // before the request is written
		answer := b.send(ctx, c)
		open := outcomeOpen(answer.err)
		r.haste.heard(asked, r.clock.read(), !open)
		if open {
			b.doubt()
		}
		grant = answer.grant
		return answer.err
	})
	r.outage.heard(err)
	return grant, asked, err
}

func (b *bid) send(ctx context.Context, c driver.Claim) reply {
	if here(ctx) {
		return b.acquire(ctx, c)
	}
	return b.sendApart(ctx, c)
}

// sendApart is send on a goroutine of its own. It is apart from it as what a goroutine takes along
// is an allocation, which send would make first of all.
func (b *bid) sendApart(ctx context.Context, c driver.Claim) reply {
	answer, ok := ask(ctx, b.root, func(ctx context.Context) reply { return b.acquire(ctx, c) },
		func(late reply) { b.settle(ctx, late) })
	if !ok {
		answer.err = errNoAnswer
	}
	return answer
}

func (b *bid) acquire(ctx context.Context, c driver.Claim) reply {
	grant, err := b.root.driver.Acquire(ctx, c)
	return reply{grant, err}
}

// doubt says that a command may have acted without our knowing.
func (b *bid) doubt() {
	b.mu.Lock()
	b.open = true
	b.mu.Unlock()
}

// outcomeOpen says whether err leaves open what the command did.
func outcomeOpen(err error) bool {
	if err == nil || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrNotOwner) {
		return false
	}
	_, held := errors.AsType[*driver.Held](err)
	_, done := errors.AsType[*driver.Done](err)
	return !held && !done
}

// settle deals with the outcome of a command whose caller has gone. While the token is
// tried or owned there is nothing to do: the commands that follow, the release at the
// latest, deal with whatever it granted.
func (b *bid) settle(ctx context.Context, late reply) {
	if late.err != nil && !outcomeOpen(late.err) {
		return
	}
	b.mu.Lock()
	over := b.phase == bidOver
	b.stray = b.stray || b.phase == bidEnding
	b.mu.Unlock()
	if over {
		b.cleanUp(ctx, nil)
	}
}

// to moves the token on.
func (b *bid) to(p bidPhase) {
	b.mu.Lock()
	b.phase = p
	b.mu.Unlock()
}

// giveUp ends a token that no tenure owns. It cleans up in the background if a command may
// have acted, or there is a place to leave; what it cannot reach dies within one TTL.
func (b *bid) giveUp(ctx context.Context, p *place) {
	b.mu.Lock()
	b.phase = bidOver
	open := b.open
	b.mu.Unlock()
	if open || p != nil {
		b.root.spawn(func() { b.cleanUp(ctx, p) })
	}
}

// giveBack ends a token that was granted too late to be of use.
func (b *bid) giveBack(ctx context.Context) {
	b.to(bidOver)
	b.cleanUp(ctx, nil)
}

// end ends a token whose tenure is over.
func (b *bid) end(ctx context.Context) {
	b.mu.Lock()
	b.phase = bidOver
	stray := b.stray
	b.mu.Unlock()
	if stray {
		b.root.spawn(func() { b.cleanUp(ctx, nil) })
	}
}

// cleanUp leaves a place in the backend's line, if there is one to leave, and deletes the
// name if the dead token owns it, in one step. Whether that worked changes nothing for
// anybody here, so the outcome is dropped.
func (b *bid) cleanUp(ctx context.Context, p *place) {
	claim := b.claim()
	if p != nil {
		claim.Place = p.id
	}
	b.dispose(ctx, claim)
}

// leaveAgain is for the end of a command that lines p up. If the place was left meanwhile, the
// command may have come after the one that left. It goes without the bid's token, which may
// be in use.
func (b *bid) leaveAgain(ctx context.Context, p *place) {
	select {
	case <-p.left:
		b.dispose(ctx, driver.Claim{Name: b.name, Token: newToken(), TTL: b.cfg.lifetime(), Place: p.id})
	default:
	}
}

// doubtPlace is for the end of a Wait. If it leaves open what became of the command that lined
// p up, p is left once more, some time after it was left.
func (b *bid) doubtPlace(ctx context.Context, p *place, err error) {
	answered := err == nil || err == ctx.Err() //nolint:errorlint // driver.Queuer: as it is
	if answered || errors.Is(err, driver.ErrNotSent) || !p.doubt.CompareAndSwap(false, true) {
		return
	}
	b.root.spawn(func() {
		<-p.left
		sleep(b.root.life, quickPatience) //nolint:contextcheck // only Close cuts it short
		b.leaveAgain(ctx, p)
	})
}

func (b *bid) dispose(ctx context.Context, claim driver.Claim) {
	ctx = context.WithoutCancel(ctx)
	_ = b.root.persist(ctx, b.bound()/2, b.bound(), failed, func(ctx context.Context) error {
		return b.release(ctx, claim)
	})
}

// release sends one release, and answers within ctx.
func (b *bid) release(ctx context.Context, c driver.Claim) error {
	if here(ctx) {
		return b.root.driver.Release(ctx, c)
	}
	return b.releaseApart(ctx, c)
}

func (b *bid) releaseApart(ctx context.Context, c driver.Claim) error {
	err, ok := ask(ctx, b.root, func(ctx context.Context) error { return b.root.driver.Release(ctx, c) }, nil)
	if !ok {
		return errNoAnswer
	}
	return err
}

// Sends of one command within one attempt, and the pause after the first; each further
// pause is four times as long.
const (
	maxSends   = 4
	firstPause = 2 * time.Millisecond
)

// persist sends a command again while again says so, for no longer than bound and no more
// than maxSends times. The first is given up after patience if it is met with silence, so
// that there is time to send another.
func (r *root) persist(ctx context.Context, patience, bound time.Duration, again func(error) bool, send func(context.Context) error) error {
	began := time.Now()
	for n, pause := 1, firstPause; ; n, pause = n+1, pause*4 {
		sctx, cancel := r.within(ctx, patience)
		err := send(sctx)
		cancel()
		wait := jitter(pause)
		patience = bound - time.Since(began) - wait
		if !again(err) || n == maxSends || patience <= 0 || !sleep(ctx, wait) {
			return err
		}
	}
}

// sleep waits for d, or less if ctx ends, and says whether ctx still stands.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// jitter returns a duration between three quarters of d and d.
func jitter(d time.Duration) time.Duration {
	if d < 4 {
		return d
	}
	return d - rand.N(d/4) //nolint:gosec // G404: jitter is no secret
}
