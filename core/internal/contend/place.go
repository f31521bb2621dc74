// Package contend gets a hold of a name: by an attempt of the caller's own, by a turn of a hold that this process has, or by
// waiting.
//
// [Caller], [Asker] and [Leaver] are written as steps: each says what to do next, and takes what has come of it. They have
// no goroutine and no clock, and send nothing, so that every order of events can be played. [Room] carries the steps out.
package contend

import (
	"cmp"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/queue"
)

// Waiting is one call, as the line knows it.
type Waiting struct {
	Want  *hold.Want
	Began clock.Awake
	Long  clock.Awake // when it has waited for long
}

// News is the last answer that a line has heard. At most one of Held and Err is set.
type News struct {
	Held    *driver.Held
	At      clock.Awake // when it was heard
	Err     error       // nobody has answered a command
	Patient time.Duration

	// Of the outcome of a call that does not wait, where Err has all answers:
	Want     *hold.Want // what it asked for
	Asked    clock.Awake
	Answered bool
}

// The queue's types, for what waits here.
type (
	Table  = queue.Table[Waiting, *hold.Hold, News]
	Line   = queue.Line[Waiting, *hold.Hold, News]
	Waiter = queue.Waiter[Waiting, *hold.Hold, News]
	Word   = queue.Word[*hold.Hold]
	Look   = queue.Look[*hold.Hold, News]
)

// Place is what the steps of one process share.
type Place struct {
	Table *Table
	Site  hold.Site
	Can   driver.Capabilities

	block atomic.Int32 // how many fences to ask for while others wait; 0 for the first
}

// NewTable returns an empty table.
func NewTable() *Table { return queue.New[Waiting, *hold.Hold, News]() }

// Do is what a step says to do.
type Do uint8

// What there is to do.
const (
	Send   Do = iota // a command, and Answered
	Pause            // for Step.For, and Next
	Listen           // wait for a word of the line, and Told; or Leave
	Watch            // wait for a change of the line, and Look; for Step.For at most
	Again            // call Next
	Idle             // wait until Leaver.Idle is closed, and Next
	Over             // this is the end: Hold or Err
)

// Step is what to do next. Whatever Start and Clean say is done first.
type Step struct {
	Do      Do
	Claim   *claim.Claim
	Want    *hold.Want
	Fences  int
	For     time.Duration
	Start   *Asker // begin it
	Clean   claim.Cleanup
	Behind  *claim.Claim // whom to clean up behind
	Hold    *hold.Hold   // with Listen: who has the name here
	Changed <-chan struct{}
	Err     error
}

// What a call is told, besides what the driver says.
var (
	ErrClosed = errors.New("contend: closed")
	ErrSilent = errors.New("contend: no answer for as long as a grant would last")
)

// Key is the key of the line for callers that want a name in this way: there is one for each kind. It is never another name,
// because no name has a control character.
func Key(w *hold.Want) string {
	switch {
	case w.Handoff != "": // it passes the queue: the name is not free, but kept for it
		return w.Name + "\x00" + w.Handoff
	case w.Degrade: // what one is told counts for no other: fallback keeps them apart
		return w.Name + "\x00degrade"
	case w.Together():
		return w.Name + "\x00" + strconv.Itoa(w.Limit)
	default:
		return w.Name
	}
}

// fences is how many fences to ask for. Blocks adapt to how many turns a hold has had: a large one would use up
// a counter that names share.
func (p *Place) fences(w *hold.Want, behind bool) int {
	if !behind || !p.Can.Block || w.Together() { // holds that are shared have no turns
		return 0
	}
	return int(cmp.Or(p.block.Load(), firstBlock))
}

const (
	firstBlock = 256
	leastBlock = 32
)

// used takes note of how many turns a hold had that ends while others wait.
func (p *Place) used(turns int) {
	p.block.Store(int32(min(max(2*turns, leastBlock), driver.MaxFences)))
}

// round is how long the asker waits at a time. After silence it waits longer, so that the patience of everybody is tried.
func (p *Place) round(ttl time.Duration, fails int) time.Duration {
	d := driver.Recheck(ttl)
	if fails == 0 && !p.Can.Hears {
		d *= polls
	}
	return max(d, min(d<<min(fails, 8), 2*time.Second))
}

// polls is how much longer a round is for a driver that polls: each round begins at its quickest pace.
const polls = 8

// granted is whose the grant of r is, which h has asked for. If that was made without the service, it is another one, and the claim that has
// asked is dropped.
func granted(h *hold.Hold, r call.Reply) (own *hold.Hold, s Step) {
	if r.Grant.Degraded == "" {
		return h, s
	}
	s.Behind, s.Clean = &h.Claim, h.Claim.Drop(r.Now.Awake())
	return h.Degraded(r.Grant), s
}
