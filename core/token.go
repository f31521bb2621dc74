package core

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/callctx"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
)

// token is one token, from the first command that carries it until no command may carry it
// any more. It knows which commands' outcomes are still open, so that whatever they turn
// out to have granted is given back, and never while the token is in use.
//
// Many are kept at once, so it has no claim, but what makes one: what all of a call's tokens ask
// for is in the config.
type token struct {
	engine *engine
	cfg    *config
	name   string
	secret string

	mu    sync.Mutex // protects the fields below
	phase tokenPhase
	stray bool   // a command was granted while the release was under way, and its caller had gone
	freed bool   // the release was confirmed
	open  uint8  // commands that may have acted, or may still act, without our knowing; 255: more than anybody counts
	since uint32 // when the last of them was given up, in s since the Locker was made
}

type tokenPhase uint8

const (
	tokenTrying tokenPhase = iota // in an acquire
	tokenOwned                    // in a tenure
	tokenEnding                   // in the release of that tenure
	tokenOver
	tokenKept // over, but the name may be its own for a while still: WithMinHold, and no word of its release
)

func newToken(r *engine, name string, c *config) *token {
	return &token{engine: r, cfg: c, name: name, secret: newSecret()}
}

func (b *token) claim() driver.Claim {
	c := b.cfg
	return driver.Claim{
		Name: b.name, Token: b.secret, Label: c.label, TTL: c.lifetime(),
		Shared: c.shared, Limit: c.limit, Scope: c.scope, Dedup: c.dedup,
	}
}

type reply struct {
	grant driver.Grant
	err   error
}

// attempt asks for the grant until it is answered, for no longer than bound: a command
// whose reply is lost is sent again with the same token. The reading is the one before the
// answered command was sent.
func (b *token) attempt(ctx context.Context, bound time.Duration, c driver.Claim) (grant driver.Grant, asked clock.Reading, err error) {
	r := b.engine
	err = r.persist(ctx, r.patience(ctx, bound), bound, outcomeOpen, func(ctx context.Context) error {
		asked = r.clock.Read() // before the request is written
		answer := b.send(ctx, c)
		open := outcomeOpen(answer.err)
		r.latency.heard(asked, r.clock.Read(), !open)
		if open {
			b.doubt()
		}
		grant = answer.grant
		return answer.err
	})
	r.outage.heard(err)
	return grant, asked, err
}

func (b *token) send(ctx context.Context, c driver.Claim) reply {
	if callctx.Is(ctx) {
		return b.acquire(ctx, c)
	}
	return b.sendApart(ctx, c)
}

// sendApart is send on a goroutine of its own. It is apart from it as what a goroutine takes along
// is an allocation, which send would make first of all.
func (b *token) sendApart(ctx context.Context, c driver.Claim) reply {
	answer, ok := callApart(ctx, b.engine, func(ctx context.Context) reply { return b.acquire(ctx, c) },
		func(late reply) { b.lateReply(ctx, late) })
	if !ok {
		answer.err = errNoAnswer
	}
	return answer
}

func (b *token) acquire(ctx context.Context, c driver.Claim) reply {
	grant, err := b.engine.driver.Acquire(ctx, c)
	return reply{grant, err}
}

// doubt says that a command may have acted, or may act yet, without our knowing.
func (b *token) doubt() {
	now := b.engine.seconds()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since = now
	if b.open < math.MaxUint8 {
		b.open++
	}
}

// settled says that nothing more can come of one of those commands. The caller holds the mutex.
func (b *token) settled() {
	if b.open < math.MaxUint8 {
		b.open--
	}
}

func (b *token) doubtful() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open > 0
}

// lateReply deals with the outcome of a command whose caller has gone, and who counts it as open. A
// grant is dealt with by the commands that follow while the token is owned, and by its clean-up
// otherwise: of a token that is still tried nobody else knows that it was granted.
func (b *token) lateReply(ctx context.Context, late reply) {
	if outcomeOpen(late.err) {
		return
	}
	granted := late.err == nil
	b.mu.Lock()
	phase := b.phase
	b.stray = b.stray || granted && phase == tokenEnding
	if !granted || phase == tokenOwned || phase == tokenEnding {
		b.settled()
	}
	b.mu.Unlock()
	if granted && phase == tokenOver && !failed(b.cleanUp(ctx, nil)) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.settled()
	}
}

// to moves the token on.
func (b *token) to(p tokenPhase) {
	b.mu.Lock()
	b.phase = p
	b.mu.Unlock()
}

// giveUp ends a token that no tenure owns. It is cleaned up behind in the background if a
// command may have acted, or there is a place to leave.
func (b *token) giveUp(ctx context.Context, p *place) {
	b.to(tokenOver)
	if p != nil {
		b.engine.spawn(func() {
			if failed(b.cleanUp(ctx, p)) {
				b.leaveLater(p)
			}
		})
	}
	b.sweep(0)
}

// giveBack ends a token that was granted too late to be of use.
func (b *token) giveBack(ctx context.Context) {
	b.to(tokenOver)
	if failed(b.cleanUp(ctx, nil)) {
		b.doubt()
	}
	b.sweep(sweep.First)
}

// confirm says that the release was confirmed.
func (b *token) confirm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freed = true
}

// end ends a token whose tenure is over. Kept says that the name may be its own for a while still,
// by WithMinHold, unless its release was confirmed.
func (b *token) end(ctx context.Context, kept bool) {
	b.mu.Lock()
	b.phase = tokenOver
	if kept = kept && !b.freed; kept {
		b.phase = tokenKept
	}
	stray := b.stray
	b.mu.Unlock()
	if kept {
		return
	}
	if stray {
		b.engine.spawn(func() { b.giveBack(ctx) })
	}
	b.sweep(sweep.First)
}

// release sends one release, and answers within ctx.
func (b *token) release(ctx context.Context, c driver.Claim) error {
	if callctx.Is(ctx) {
		return b.engine.driver.Release(ctx, c)
	}
	return b.releaseApart(ctx, c)
}

func (b *token) releaseApart(ctx context.Context, c driver.Claim) error {
	err, ok := callApart(ctx, b.engine, func(ctx context.Context) error { return b.engine.driver.Release(ctx, c) }, nil)
	if !ok {
		return errNoAnswer
	}
	return err
}

// recall frees a name that was left for a hand-off which nobody has, or which is of no use. It
// takes it over as the hand-off's owner, and gives it back. What it cannot reach comes free when
// its time is over.
func (r *engine) recall(ctx context.Context, c *config, name, handoff string) {
	ctx = context.WithoutCancel(ctx)
	b := newToken(r, name, c)
	claim := b.claim()
	claim.Handoff, claim.Dedup = handoff, 0
	if _, _, err := b.attempt(ctx, b.cfg.attemptTimeout(), claim); err != nil {
		b.giveUp(ctx, nil)
		return
	}
	b.giveBack(ctx)
}
