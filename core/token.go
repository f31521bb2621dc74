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

// token is one token, from the first command that carries it until no command can carry it any
// more. It knows which commands have an open outcome. Whatever they turn out to have granted is
// given back, but never while the token is in use.
//
// A process keeps many tokens at once. So a token keeps no claim, but only what makes one: config
// has what all tokens of a call ask for.
type token struct {
	engine *engine
	cfg    *config
	name   string
	secret string

	mu    sync.Mutex // protects the fields below
	phase tokenPhase
	stray bool   // during the release, a command turned out to be granted whose caller had gone
	freed bool   // the release was confirmed
	open  uint8  // how many commands may have acted, or may still act, without our knowledge; 255 is for 255 or more
	since uint32 // when the last of them was given up, as engine.seconds
}

type tokenPhase uint8

const (
	tokenTrying tokenPhase = iota // in an acquire
	tokenOwned                    // in a tenure
	tokenEnding                   // in the release of that tenure
	tokenOver
	tokenKept // over, but it may still own the name for a while: WithMinHold, and no answer to its release
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

// attempt asks for the grant until there is an answer, for at most bound. If a reply is lost, the
// command is sent again with the same token. asked is the reading of the clocks before the answered
// command was sent.
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

// sendApart is send on a goroutine of its own. It is a function of its own because the variables of
// a goroutine's function are allocated. Inside send that would happen at the start of every call.
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

// doubt says that a command may have acted, or may still act, without our knowledge.
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

// doubtful says whether the outcome of any command is open.
func (b *token) doubtful() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open > 0
}

// isOver says whether no command may carry the token any more, except to clean up.
func (b *token) isOver() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.phase == tokenOver
}

// lateReply deals with the outcome of a command whose caller has gone, and has counted it as open.
// What becomes of a grant depends on the token. While it is owned or being released, the commands
// that follow deal with the grant. If it is over, the grant is cleaned up here. If it is still
// being tried, nobody else knows of the grant, so the command stays counted as open, for the
// clean-up to come.
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
	if granted && phase == tokenOver && !failed(b.cleanUp(ctx)) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.settled()
	}
}

// to moves the token on to phase p.
func (b *token) to(p tokenPhase) {
	b.mu.Lock()
	b.phase = p
	b.mu.Unlock()
}

// giveUp ends a token that no tenure owns. If a command may have acted, or there is a place to
// leave or an offer to withdraw, it is cleaned up in the background.
func (b *token) giveUp(ctx context.Context, p *place, o offer) {
	b.to(tokenOver)
	if p != nil {
		o = offer{at: p}
	}
	if o.at != nil {
		b.engine.spawn(func() { b.withdraw(ctx, o) })
	}
	b.sweep(0)
}

// giveBack ends a token that was granted too late to be of use.
func (b *token) giveBack(ctx context.Context) {
	b.to(tokenOver)
	if failed(b.cleanUp(ctx)) {
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

// end ends a token whose tenure is over. kept says that the token may still own the name for a
// while, by WithMinHold, unless its release was confirmed.
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

// release sends one release, and returns within ctx.
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

// recall frees a name that was left for a hand-off that nobody has, or that is of no use. It takes
// the name over with the hand-off, and gives it back. If it cannot reach the backend, the name
// comes free when its time is over.
func (r *engine) recall(ctx context.Context, c *config, name, handoff string) {
	ctx = context.WithoutCancel(ctx)
	b := newToken(r, name, c)
	claim := b.claim()
	claim.Handoff, claim.Dedup = handoff, 0
	if _, _, err := b.attempt(ctx, b.cfg.attemptTimeout(), claim); err != nil {
		b.giveUp(ctx, nil, offer{})
		return
	}
	b.giveBack(ctx)
}
