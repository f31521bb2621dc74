package redislock

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

const (
	// maxFlights is how many round trips are under way before commands begin to share them. Those that share
	// are fewShared flights, or maxFlights if there are too many for fewShared.
	maxFlights = 3
	fewShared  = 2
	// maxShare is how many commands share a round trip at most.
	maxShare = 128
	// stuck is how long commands wait for a round trip to share at most.
	stuck = 250 * time.Millisecond
)

// share puts the commands of many goroutines into few round trips. A caller that finds fewer than
// maxFlights under way, and no others who share one, sends its own command at once, by itself. Other
// commands gather until a round trip ends. Each that begins takes its part of all that there are, so that
// the server works for one while we work for another. Commands that can be merged share one call of a
// script.
//
// A shared round trip belongs to no caller: no caller's ctx ends it. A caller whose ctx ends leaves
// it behind.
type share struct {
	store *Store    // that spells commands
	spare sync.Pool // of *parcel

	mu      sync.Mutex // protects the fields below
	flights int
	shared  int // how many of them are shared
	riding  int // commands in those
	waiting []*parcel
	hurry   *time.Timer // runs while anything waits
}

// parcel is one command that waits for a round trip to share.
type parcel struct {
	ctx   context.Context
	cmd   command
	reply any
	err   error
	sent  bool          // protected by share.mu
	done  chan struct{} // of size one
}

var errLeft = errors.New("redislock: the caller left while its command was under way")

// do sends cmd and returns its reply.
func (s *share) do(ctx context.Context, cmd command) (any, error) {
	s.mu.Lock()
	if s.flights < maxFlights && s.shared == 0 && len(s.waiting) == 0 {
		s.flights++
		s.mu.Unlock()
		defer s.landed()
		cmd = s.store.spelled(cmd)
		return cmd.alone(ctx, s.store.rdb, s.store.replicas)
	}
	p, _ := s.spare.Get().(*parcel)
	if p == nil {
		p = &parcel{done: make(chan struct{}, 1)}
	}
	p.ctx, p.cmd, p.sent = ctx, cmd, false
	s.waiting = append(s.waiting, p)
	if len(s.waiting) == 1 {
		s.setHurry()
	}
	s.mu.Unlock()
	select {
	case <-p.done:
		reply, err := p.reply, p.err
		*p = parcel{done: p.done}
		s.spare.Put(p)
		return reply, err
	case <-ctx.Done(): // p is not reused: its answer may still come
		return nil, s.abandon(p)
	}
}

// abandon ends p for its caller, which cannot wait any more, and says whether it was sent.
func (s *share) abandon(p *parcel) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.sent {
		return errors.Join(errLeft, p.ctx.Err())
	}
	for i, q := range s.waiting {
		if p == q {
			s.waiting = append(s.waiting[:i:i], s.waiting[i+1:]...)
			break
		}
	}
	return driver.NotSent(p.ctx.Err())
}

// landed ends a caller's own flight. Commands that have gathered meanwhile go out on a goroutine,
// which exists as long as there are more. Only the callers of those commands wait for it. Each of its
// round trips ends with the latest of their deadlines.
func (s *share) landed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flights--
	if len(s.waiting) > 0 && s.shared < s.most() {
		s.begin()
	}
}

// begin begins a flight that commands share. The caller holds the mutex.
func (s *share) begin() {
	s.flights++
	s.shared++
	go s.fly()
}

// most is how many flights all commands share. The caller holds the mutex.
func (s *share) most() int {
	if len(s.waiting)+s.riding > fewShared*maxShare {
		return maxFlights
	}
	return fewShared
}

// fly makes round trips while there are commands. Most of those who have their answers send again at once.
// It lets them run before it takes what goes next.
func (s *share) fly() {
	for batch := s.take(); batch != nil; batch = s.take() {
		s.send(batch)
		runtime.Gosched()
		runtime.Gosched()
	}
}

// arrived says that n commands have their answers, and before their callers do: nobody is counted twice.
func (s *share) arrived(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.riding -= n
}

// take returns the commands that go next. If there are none, it returns nil and ends the flight.
func (s *share) take() []*parcel {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.flights--
		s.shared--
		s.waiting = nil
		return nil
	}
	most := s.most()
	n := min(len(s.waiting), maxShare, (len(s.waiting)+s.riding+most-1)/most)
	batch := s.waiting[:n:n]
	s.waiting = s.waiting[n:]
	s.riding += n
	for _, p := range batch {
		p.sent = true
	}
	s.setHurry()
	if len(s.waiting) > 0 && s.shared < most {
		s.begin()
	}
	return batch
}

// setHurry sets the timer that sends what waits if no round trip ends for too long. The caller holds
// the mutex.
func (s *share) setHurry() {
	switch {
	case s.hurry == nil:
		s.hurry = time.AfterFunc(stuck, s.overtake)
	case len(s.waiting) == 0:
		s.hurry.Stop()
	default:
		s.hurry.Reset(stuck)
	}
}

func (s *share) overtake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > 0 {
		s.begin()
	}
}

// send makes one round trip for a batch, and a second one for scripts that the server does not know.
// That answer proves that nothing was executed.
func (s *share) send(batch []*parcel) {
	ctx, cancel := together(batch)
	defer cancel()
	loads := s.stow(batch)
	s.exec(ctx, loads, nil)
	var unknown []*load
	first := map[*script]*load{}
	for _, l := range loads {
		if says(l.sent.Err(), "NOSCRIPT") {
			unknown = append(unknown, l)
			if first[l.cmd.script] == nil {
				first[l.cmd.script] = l
			}
		}
	}
	if len(unknown) > 0 {
		s.exec(ctx, unknown, first)
	}
	s.arrived(len(batch))
	for _, l := range loads {
		l.deliver(ctx, s)
	}
}

// exec makes one round trip. The first command of each script has the whole script with it, if told.
func (s *share) exec(ctx context.Context, loads []*load, first map[*script]*load) {
	trip := newBatch(s.store.rdb.Pipeline())
	lasting := false
	for _, l := range loads {
		if l.sent = l.cmd.evalsha(ctx); first[l.cmd.script] == l {
			l.sent = l.cmd.eval(ctx)
		}
		trip.put(ctx, l.sent)
		lasting = lasting || l.cmd.lasting
	}
	var ack *redis.Cmd // one for all of them
	if lasting && s.store.replicas.n > 0 {
		ack = s.store.replicas.wait(ctx, trip)
	}
	for _, l := range loads {
		l.ack = ack
	}
	trip.exec(ctx)
}

// trip makes one round trip for commands, and returns them with their replies. It waits for no other
// round trip.
func (s *Store) trip(ctx context.Context, commands []command) []*parcel {
	batch := make([]*parcel, len(commands))
	for i, cmd := range commands {
		batch[i] = &parcel{ctx: ctx, cmd: cmd, done: make(chan struct{}, 1)}
	}
	alone := &share{store: s, riding: len(batch)}
	alone.send(batch) //nolint:contextcheck // ctx is in each parcel
	return batch
}

// together returns a context that ends with the latest deadline among those that share a round trip.
// It has none of their values, since it may outlive each of them.
func together(batch []*parcel) (context.Context, context.CancelFunc) {
	var last time.Time
	for _, p := range batch {
		deadline, ok := p.ctx.Deadline()
		if !ok {
			return context.WithCancel(context.Background())
		}
		if deadline.After(last) {
			last = deadline
		}
	}
	return context.WithDeadline(context.Background(), last)
}

// load is one command of a pipeline: one parcel, or several that were merged.
type load struct {
	parcels []*parcel
	cmd     command
	sent    *redis.Cmd
	ack     *redis.Cmd // of the replicas, or nil
}

// stow merges what can be merged.
func (s *share) stow(batch []*parcel) []*load {
	var loads []*load
	type kind struct {
		merger *merger
		group  int
	}
	merged := make(map[kind]*load, 2)
	for _, p := range batch {
		m := kind{p.cmd.merger, p.cmd.group}
		if l := merged[m]; m.merger != nil && l != nil {
			l.parcels = append(l.parcels, p)
			continue
		}
		l := &load{parcels: []*parcel{p}, cmd: p.cmd}
		loads = append(loads, l)
		if m.merger != nil {
			merged[m] = l
		}
	}
	for _, l := range loads {
		if len(l.parcels) > 1 {
			l.cmd = l.cmd.merger.of(s.store, l.parcels)
		} else {
			l.cmd = s.store.spelled(l.cmd)
		}
	}
	return loads
}

// deliver hands each parcel its reply. If the server has forgotten the script again, nothing was
// executed, and the command is sent again with the whole script.
func (l *load) deliver(ctx context.Context, s *share) {
	reply, err := l.sent.Result()
	if says(err, "NOSCRIPT") {
		reply, err = l.cmd.whole(ctx, s.store.rdb, s.store.replicas)
	} else if err == nil && l.cmd.lasting && l.ack != nil {
		err = s.store.replicas.heard(l.ack)
	}
	err = l.cmd.script.explained(err)
	for i, p := range l.parcels {
		p.reply, p.err = reply, err
		if len(l.parcels) > 1 {
			p.reply, p.err = l.cmd.answered(reply, i, len(l.parcels), err)
		}
		p.done <- struct{}{}
	}
}

var errUnknownReply = errors.New("redislock: unknown reply to a merged command")
