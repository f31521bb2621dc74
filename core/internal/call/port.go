// Package call makes the calls of a driver: each of them bounded, on its caller's goroutine or on one of
// its own, and sent again while its outcome is open. An outcome that comes too late goes to its owner.
//
// No other room calls a driver.
package call

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/callctx"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
)

// Op is a method of a driver.
type Op uint8

// The methods for one claim.
const (
	Acquire Op = iota
	Wait
	Release
)

// Reply is the outcome of a command. Asked was read before it was sent, or is when the driver says that the grant
// began. Now was read after its answer, or after the wait for that.
type Reply struct {
	Grant      driver.Grant
	Err        error
	Asked, Now clock.Reading
}

// Meaning is what the reply's error means.
func (r Reply) Meaning() driver.Meaning { return driver.Explain(r.Err) }

// Port is the way to a driver. It is safe for concurrent use.
type Port struct {
	Can   driver.Capabilities
	Clock *clock.Clock
	Tasks *tasks.Group // what Close waits for

	driver driver.Driver
	pool   callctx.Pool
	quick  atomic.Int64 // until when the driver counts as quick, as clock.Awake
	hung   atomic.Int32 // calls that were left behind and have not returned
}

// New returns the way to d.
func New(d driver.Driver, c *clock.Clock, g *tasks.Group) *Port {
	return &Port{Can: d.Capabilities(), Clock: c, Tasks: g, driver: d}
}

// A call on a goroutine of its own can be left behind when the caller's context is cancelled. That costs
// one or two wake-ups of threads, and on a busy machine they cost more than the call itself. So as long as
// the driver is quick, a call runs on its caller's goroutine, and a cancellation waits for the answer: for
// quickAnswer typically, for quickPatience at worst. Deadlines are kept in either case, because only a
// driver.Capabilities.Punctual driver is called in this way.
const (
	quickAnswer   = 100 * time.Millisecond // how long an answer may take to prove that the driver is quick
	quickFor      = time.Second            // how long such a proof lasts
	quickPatience = 250 * time.Millisecond // after which a command counts as unanswered
)

// Hung is how many calls may hang at once before Wait is not called any more.
const Hung = 256

// Crowded says that so many calls hang. Then short attempts take the place of Wait.
func (p *Port) Crowded() bool { return p.hung.Load() >= Hung }

// Full says that even attempts in place of a Wait are not to be made: twice as many hang.
func (p *Port) Full() bool { return p.hung.Load() >= 2*Hung }

// heard takes note of how long an answer took, or of the lack of one.
func (p *Port) heard(r Reply) {
	if m := r.Meaning(); !m.Answered() || r.Now.Awake().Sub(r.Asked.Awake()) > quickAnswer {
		p.quick.Store(0)
		return
	}
	p.quick.Store(int64(r.Now.Awake().Add(quickFor)))
}

// Inline says that a command with ctx runs on its caller's goroutine: nothing can delay it there for longer than a quick driver
// takes. One whose ctx cannot end always does, if the driver is punctual: nothing of it uses ctx when Send has returned.
func (p *Port) Inline(ctx context.Context, now clock.Awake) bool {
	return p.Can.Punctual && (ctx.Done() == nil || p.isQuick(now))
}

func (p *Port) isQuick(now clock.Awake) bool { return int64(now) < p.quick.Load() }
