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
	// idleAfter is how long a connection outlasts its last listener, at least.
	idleAfter = time.Minute

	// Pauses between a connection that failed and the next one.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second

	probed = "?" // the payload of a test; no token is that
)

// subscriber is a Store's connection that listens, and those who wait for what it hears. What it hears are hints.
// A nil subscriber hears nothing.
type subscriber struct {
	channel string
	open    func(ctx context.Context) (Listener, error)
	notify  func(ctx context.Context, to string) error

	mu        sync.Mutex               // protects the fields below
	feed      *feed                    // nil if there is none
	waiting   map[string]chan struct{} // of size one, by token
	left      time.Time                // when somebody last ended to wait
	pause     time.Duration            // after the last feed, if it failed; else 0
	notBefore time.Time                // when that pause is over
}

// feed is one connection, from dialling to its end.
type feed struct {
	end   context.CancelFunc
	ready chan struct{} // closed once a test has arrived
	over  chan struct{} // closed when nothing of it is left
	soon  time.Time     // how long waiters wait for ready
}

func newSubscriber(open func(ctx context.Context) (Listener, error), notify func(ctx context.Context, to string) error) *subscriber {
	return &subscriber{
		channel: "holdfast_" + strings.ToLower(rand.Text()), open: open, notify: notify, waiting: make(map[string]chan struct{}),
	}
}

// notify tells a waiter, by its channel and its token, to look. A transaction that does nothing else waits for no disk.
func (s *Store) notify(ctx context.Context, to string) error {
	channel, token, there := strings.Cut(to, " ")
	if !there {
		return nil
	}
	_, err := s.db.ExecContext(ctx, "SELECT pg_catalog.pg_notify($1, $2)", channel, token)
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

// listen returns what tells a waiter to look, until it leaves.
func (s *subscriber) listen(token string) (heard chan struct{}, leave func()) {
	if s == nil {
		return nil, func() {}
	}
	heard = make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[token] = heard
	return heard, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.left = time.Now()
		if s.waiting[token] == heard { // and not that of a later call
			delete(s.waiting, token)
		}
	}
}

// tells says whether waiters hear every hint from now on. If there is no connection, it begins one, unless the last one
// has just failed.
func (s *subscriber) tells() bool { return s != nil && s.connection().tells() }

// await gives a new connection a moment, at most half of the time that ctx leaves.
func (s *subscriber) await(ctx context.Context) {
	if s == nil {
		return
	}
	f := s.connection()
	if f == nil {
		return
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
}

func (s *subscriber) connection() *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feed == nil && !time.Now().Before(s.notBefore) {
		s.feed = s.begin()
	}
	return s.feed
}

// begin opens a connection, which outlives the caller that it is opened for. s.mu is held.
func (s *subscriber) begin() *feed {
	ctx, end := context.WithCancel(context.Background())
	f := &feed{end: end, ready: make(chan struct{}), over: make(chan struct{})}
	if s.pause == 0 {
		f.soon = time.Now().Add(soonReady)
	}
	go func() {
		defer close(f.over)
		defer end()
		began := time.Now()
		err := s.run(ctx, f)
		s.lost(f, err, ctx.Err() != nil || err == nil, time.Since(began))
	}()
	return f
}

// run hears until the connection breaks or ctx ends.
func (s *subscriber) run(ctx context.Context, f *feed) error {
	opening, stop := context.WithTimeout(ctx, openBound)
	defer stop()
	conn, err := s.open(opening)
	if err != nil {
		return err
	}
	defer func() {
		closing, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = conn.Close(closing) // nobody needs it any more
	}()
	if err := conn.Listen(opening, s.channel); err != nil {
		return err
	}
	if err := s.test(opening, conn); err != nil {
		return err
	}
	close(f.ready)
	for ctx.Err() == nil && !s.rests() {
		if err := s.next(ctx, conn); err != nil {
			return err
		}
	}
	return nil
}

// rests says whether nobody has waited for a while.
func (s *subscriber) rests() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) == 0 && time.Since(s.left) > idleAfter
}

// test sends a notification through the Store's own db, and waits for it.
func (s *subscriber) test(ctx context.Context, conn Listener) error {
	if err := s.notify(ctx, s.channel+" "+probed); err != nil {
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
func (s *subscriber) next(ctx context.Context, conn Listener) error {
	patience, stop := context.WithTimeout(ctx, pingAfter)
	payload, err := conn.Next(patience)
	silent := patience.Err() != nil
	stop()
	switch {
	case ctx.Err() != nil:
		return nil
	case err == nil:
		s.tell(payload)
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
func (s *subscriber) lost(f *feed, err error, onPurpose bool, lasted time.Duration) {
	s.mu.Lock()
	if s.feed == f {
		s.feed = nil
	}
	if onPurpose || lasted > lastRetry {
		s.pause = 0
	}
	if !onPurpose {
		s.pause = min(max(2*s.pause, firstRetry), lastRetry)
		s.notBefore = time.Now().Add(s.pause/2 + mathrand.N(s.pause)) //nolint:gosec // G404: jitter is no secret
	}
	first := s.pause == firstRetry
	s.mu.Unlock()
	if !onPurpose && (first || errors.Is(err, errDeaf)) {
		slog.Warn("holdfast: waiters poll, since nothing tells them", slog.String("because", fmt.Sprint(err)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, heard := range s.waiting {
		hint(heard)
	}
}

func (s *subscriber) tell(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if heard := s.waiting[token]; heard != nil {
		hint(heard)
	}
}

func hint(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default: // an earlier hint is still there
	}
}

// close ends the connection and waits for that.
func (s *subscriber) close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	f := s.feed
	s.mu.Unlock()
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
