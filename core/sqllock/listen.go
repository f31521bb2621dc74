package sqllock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"time"
)

// Listener is one connection to PostgreSQL that listens; see [WithListen]. Only one goroutine uses it.
type Listener interface {
	// Listen runs LISTEN. The channel is made of lower-case letters, digits and underscores, so it needs
	// no quotes.
	Listen(ctx context.Context, channel string) error
	// Next waits for the next notification and returns its payload. If ctx ends first, it returns an error,
	// and the connection must still be usable.
	Next(ctx context.Context) (payload string, err error)
	// Ping asks the server for any answer.
	Ping(ctx context.Context) error
	// Close closes the connection. It is called once.
	Close(ctx context.Context) error
}

const (
	// soonReady is how long a waiter waits for a new connection before it is queued without one.
	soonReady = 100 * time.Millisecond
	// openBound is how long connecting may take, and probeBound the notification that tests it.
	openBound  = 5 * time.Second
	probeBound = time.Second
	// pingAfter is how long a connection may be silent before it gets a ping.
	pingAfter = 10 * time.Second
	// idleAfter is how long a connection outlasts its last listener.
	idleAfter = time.Minute

	// Pauses between a connection that failed and the next one.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second

	probed = "?" // the payload of a test; no place has that name
)

// hub is a Store's connection that listens, and those who wait for what it hears. What it hears are hints.
// A nil hub hears nothing.
type hub struct {
	channel string
	open    func(ctx context.Context) (Listener, error)
	probe   func(ctx context.Context, channel string) error // sends a notification to the channel

	mu        sync.Mutex      // protects the fields below
	feed      *feed           // nil if there is none
	ears      map[string]*ear // by place
	waiting   int             // calls of Wait
	sweepAt   int             // the number of ears at which those out of use are thrown out
	idle      *time.Timer
	pause     time.Duration // after the last feed, if it failed; else 0
	notBefore time.Time     // when that pause is over
}

// feed is one connection, from dialling to its end.
type feed struct {
	end   context.CancelFunc
	ready chan struct{} // closed once a test has arrived
	over  chan struct{} // closed when nothing of it is left
	soon  time.Time     // how long waiters wait for ready
}

func newHub(open func(ctx context.Context) (Listener, error), probe func(ctx context.Context, channel string) error) *hub {
	return &hub{
		channel: "holdfast_" + strings.ToLower(rand.Text()), open: open, probe: probe,
		ears: make(map[string]*ear), sweepAt: minEars,
	}
}

// probe has PostgreSQL notify a channel.
func (s *store) probe(ctx context.Context, channel string) error {
	_, err := s.db.ExecContext(ctx, "SELECT pg_catalog.pg_notify($1, $2)", channel, probed)
	return err
}

// tells says whether the connection is known to hear.
func (f *feed) tells() bool { return f != nil && closed(f.ready) && !closed(f.over) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// ear is what one place has heard. It outlasts a call of Wait by a while: what is heard between two calls is
// heard by the second one.
type ear struct {
	heard chan struct{} // of size one

	// Protected by the hub's mutex:
	waiting int
	left    time.Time // when the last Wait ended
	seen    look      // what a refused claim has shown
	at      time.Time // when that was
	turn    *turn     // what to write when the turn has come; nil if others are ahead
	called  bool      // it has been told since
}

const (
	earLasts = 10 * time.Second // longer than any place lives
	minEars  = 64
	// fresh is how long what a refused claim has shown stands for a look. core waits right after it; on a busy
	// machine that takes a while.
	fresh = 500 * time.Millisecond
)

// listen returns the ear of a place, nil if h is nil.
func (h *hub) listen(place string) (e *ear, leave func()) {
	if h == nil {
		return &ear{}, func() {}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	e = h.ears[place]
	if e == nil {
		h.sweep()
		e = &ear{heard: make(chan struct{}, 1)}
		h.ears[place] = e
	}
	e.waiting++
	h.waiting++
	if h.idle != nil {
		h.idle.Stop()
	}
	return e, func() { h.leave(e) }
}

// sweep throws out the ears that nobody uses, once there are twice as many as the last time.
func (h *hub) sweep() {
	if len(h.ears) < h.sweepAt {
		return
	}
	for place, e := range h.ears {
		if e.waiting == 0 && time.Since(e.left) > earLasts {
			delete(h.ears, place)
		}
	}
	h.sweepAt = max(minEars, 2*len(h.ears))
}

// leave lets the connection end some time after the last Wait has.
func (h *hub) leave(e *ear) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.waiting--
	e.left = time.Now()
	h.waiting--
	if h.waiting > 0 || h.feed == nil {
		return
	}
	if h.idle == nil {
		h.idle = time.AfterFunc(idleAfter, h.rest)
	} else {
		h.idle.Reset(idleAfter)
	}
}

// refused notes what a claim has shown that was refused while the hub was telling, for the Wait that follows.
func (h *hub) refused(place string, seen look) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.ears[place]; e != nil {
		e.seen, e.at = seen, time.Now()
	}
}

// lately is what a claim has shown a moment ago, if one has.
func (h *hub) lately(e *ear) (l look, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	since := time.Since(e.at)
	e.at = time.Time{}
	l = e.seen
	l.again -= since
	return l, since < fresh
}

func (h *hub) rest() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting == 0 && h.feed != nil {
		h.feed.end()
	}
}

// tells says whether listeners hear every hint from now on.
func (h *hub) tells() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.feed.tells()
}

// reopened is tells for those who wait. If there is no connection, it begins one, unless the last one has just failed.
func (h *hub) reopened() bool {
	return h != nil && h.connection().tells()
}

// await is tells, but gives a new connection a moment, at most half of the time that ctx leaves.
func (h *hub) await(ctx context.Context) bool {
	if h == nil {
		return false
	}
	f := h.connection()
	if f == nil || f.tells() {
		return f.tells()
	}
	patience := time.Until(f.soon)
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-f.ready:
	case <-f.over:
	case <-timer.C:
	case <-ctx.Done():
	}
	return f.tells()
}

func (h *hub) connection() *feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.feed == nil && !time.Now().Before(h.notBefore) {
		h.feed = h.begin()
	}
	return h.feed
}

// begin opens a connection, which outlives the caller that it is opened for. h.mu is held.
func (h *hub) begin() *feed {
	ctx, end := context.WithCancel(context.Background())
	f := &feed{end: end, ready: make(chan struct{}), over: make(chan struct{})}
	if h.pause == 0 {
		f.soon = time.Now().Add(soonReady)
	}
	go func() {
		defer close(f.over)
		defer end()
		began := time.Now()
		err := h.run(ctx, f)
		h.lost(ctx, f, err, time.Since(began))
	}()
	return f
}

// run hears until the connection breaks or ctx ends.
func (h *hub) run(ctx context.Context, f *feed) error {
	opening, stop := context.WithTimeout(ctx, openBound)
	defer stop()
	conn, err := h.open(opening)
	if err != nil {
		return err
	}
	defer func() {
		closing, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = conn.Close(closing) // nobody needs it any more
	}()
	if err := conn.Listen(opening, h.channel); err != nil {
		return err
	}
	if err := h.test(opening, conn); err != nil {
		return err
	}
	close(f.ready)
	for ctx.Err() == nil {
		if err := h.next(ctx, conn); err != nil {
			return err
		}
	}
	return nil
}

// test sends a notification through the Store's own db, and waits for it.
func (h *hub) test(ctx context.Context, conn Listener) error {
	if err := h.probe(ctx, h.channel); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, probeBound)
	defer stop()
	for {
		payload, err := conn.Next(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return errDeaf
		case err != nil:
			return err
		case payload == probed:
			return nil
		}
	}
}

var errDeaf = errors.New("sqllock: WithListen: the connection does not hear what the Store's db sends: " +
	"is it to another database, or through a pooler in transaction mode?")

// next passes one hint on. After a silence it asks whether the connection still is one.
func (h *hub) next(ctx context.Context, conn Listener) error {
	patience, stop := context.WithTimeout(ctx, pingAfter)
	payload, err := conn.Next(patience)
	silent := patience.Err() != nil
	stop()
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil:
		h.tell(payload)
		return nil
	case !silent:
		return err
	}
	patience, stop = context.WithTimeout(ctx, openBound)
	defer stop()
	return conn.Ping(patience)
}

// lost wakes the listeners, so that they look again. If the connection was not closed on purpose and did
// not last, the next one has to wait, longer and longer.
func (h *hub) lost(ctx context.Context, f *feed, err error, lasted time.Duration) {
	onPurpose := ctx.Err() != nil
	h.mu.Lock()
	if h.feed == f {
		h.feed = nil
	}
	if onPurpose || lasted > lastRetry {
		h.pause = 0
	}
	if !onPurpose {
		h.pause = min(max(2*h.pause, firstRetry), lastRetry)
		h.notBefore = time.Now().Add(h.pause/2 + mathrand.N(h.pause)) //nolint:gosec // G404: jitter is no secret
	}
	first := h.pause == firstRetry
	h.mu.Unlock()
	if !onPurpose && (first || errors.Is(err, errDeaf)) {
		slog.Warn("holdfast: waiters poll, since nothing tells them", slog.String("because", fmt.Sprint(err)))
	}
	h.tellAll()
}

func (h *hub) tell(place string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.ears[place]; e != nil {
		e.called = true
		hint(e.heard)
	}
}

func (h *hub) tellAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.ears {
		hint(e.heard)
	}
}

func hint(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default: // an earlier hint is still there
	}
}

// close ends the connection and waits for that.
func (h *hub) close(ctx context.Context) error {
	h.mu.Lock()
	f := h.feed
	if h.idle != nil {
		h.idle.Stop()
	}
	h.mu.Unlock()
	if f == nil {
		return nil
	}
	f.end()
	select {
	case <-f.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
