package redislock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
	"github.com/holdfast-go/holdfast/core/internal/share"
)

// Acquire implements driver.Driver. It runs one script, and another one if a free name has a queue. The first claim of
// a Store asks for INFO before: see [WithoutServerCheck].
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return s.AcquireRanked(ctx, ranked.Claim{Claim: c})
}

// AcquireRanked is Acquire for a node of package redlock.
func (s *Store) AcquireRanked(ctx context.Context, c ranked.Claim) (driver.Grant, error) {
	heard, err := s.inquire(ctx, c.Name)
	if err != nil {
		return driver.Grant{}, err
	}
	g, err := s.acquire(ctx, c)
	if s.relaid(err) {
		g, err = s.acquire(ctx, c)
	}
	s.settle(heard, err)
	if err == nil {
		s.queued.Delete(c.Token)
	}
	return g, err
}

func (s *Store) acquire(ctx context.Context, at ranked.Claim) (driver.Grant, error) {
	c := at.Claim
	if joins(c) || c.Handoff != "" || at.Rank > 0 || at.Floor > 0 {
		return s.ask(ctx, at)
	}
	var cmd command
	if c.Fences > 1 || c.Dedup > 0 {
		cmd = s.attempt(c)
	} else {
		cmd = s.merged(acquires, c)
	}
	reply, err := s.run(ctx, cmd)
	if reply == int64(0) {
		return s.ask(ctx, at)
	}
	return decided(c, reply, err)
}

// attempt is acquire for a claim without a place in the queue.
func (s *Store) attempt(c driver.Claim) command {
	line, _ := s.lineKeys(c.Name)
	cmd := command{script: acquireScript, lasting: true, keys: 3, parts: make([]string, 0, 7)}
	cmd.parts = append(cmd.parts, s.lockKey(c.Name), s.layout.fence(c.Name), line)
	if c.Dedup > 0 {
		cmd.keys++
		cmd.parts = append(cmd.parts, s.doneKey(c))
	}
	cmd.parts = append(cmd.parts, owned(c), millis(c.TTL))
	if c.Fences > 1 {
		cmd.parts = append(cmd.parts, decimal(int64(c.Fences)))
	}
	return cmd
}

// ask asks for a name that may have a queue, or was left for a hand-off, or that several can own.
func (s *Store) ask(ctx context.Context, c ranked.Claim) (driver.Grant, error) {
	reply, err := s.known(ctx, s.question(c, ""))
	return decided(c.Claim, reply, err)
}

// question asks for a name once. With a note, c stands in the queue with it if that is refused.
func (s *Store) question(at ranked.Claim, note string) command {
	c := at.Claim
	line, beats := s.lineKeys(c.Name)
	cmd := command{script: askScript, lasting: true, parts: []string{s.lockKey(c.Name), s.layout.fence(c.Name), line, beats}}
	if joins(c) {
		holders, notes := s.holdersKeys(c.Name)
		cmd.script, cmd.parts = askTogetherScript, append(cmd.parts, holders, notes)
	}
	if c.Dedup > 0 {
		cmd.parts = append(cmd.parts, s.doneKey(c))
	}
	cmd.keys = len(cmd.parts)
	if joins(c) {
		cmd.parts = append(cmd.parts, holder(c), millis(c.TTL), limitOf(c), s.subscribers.member(c), lives(c), s.subscribers.channels(c.Name), c.Label, note)
		return cmd
	}
	handoff := ""
	if c.Handoff != "" {
		handoff = forHandoff(c)
	}
	cmd.parts = append(cmd.parts, owned(c), millis(c.TTL), fencesOf(c), s.subscribers.member(c), lives(c), s.subscribers.channels(c.Name), note, handoff)
	if at.Rank > 0 || at.Floor > 0 {
		cmd.parts = append(cmd.parts, decimal(int64(at.Rank)), decimal(int64(at.Floor))) //nolint:gosec // G115: at most 2^53
	}
	return cmd
}

// known runs a claim until its answer is known. A call of a script drops only so many dead places of a
// queue: others who come first may be behind them.
func (s *Store) known(ctx context.Context, cmd command) (reply any, err error) {
	for reply, err = s.run(ctx, cmd); err == nil && reply == int64(0); {
		reply, err = s.run(ctx, cmd)
	}
	return reply, err
}

func decided(c driver.Claim, reply any, err error) (driver.Grant, error) {
	if refused, ok := reply.([]any); ok { // replicas need not know of a refusal
		return driver.Grant{}, refusal(refused)
	}
	switch {
	case err != nil:
		return driver.Grant{}, err
	case joins(c):
		return joined(reply)
	default:
		return granted(reply)
	}
}

// granted reads a fence, and how many fences there are if that is more than one.
func granted(reply any) (driver.Grant, error) {
	if fence, ok := reply.(int64); ok && 0 < fence && fence <= 1<<53 { // of a merged command
		return driver.Grant{Fence: uint64(fence), Fences: 1}, nil
	}
	text, ok := reply.(string)
	if !ok {
		return driver.Grant{}, fmt.Errorf("redislock: unknown reply %T to an acquire", reply)
	}
	first, n, block := strings.Cut(text, " ")
	fence, err := strconv.ParseUint(first, 10, 53)
	g := driver.Grant{Fence: fence, Fences: 1}
	if block && err == nil {
		g.Fences, err = strconv.Atoi(n)
	}
	if err != nil || fence == 0 || g.Fences < 1 || g.Fences > driver.MaxFences {
		return driver.Grant{}, errNoGrant
	}
	return g, nil
}

// errNoGrant does not quote the reply: nobody knows what is in it.
var errNoGrant = errors.New("redislock: unknown reply to an acquire")

// refusal reads {label} of a marker, or {label, remaining, exact, limit} of an owner. The last two
// may be missing: exact is 1 if a release has left the name taken for just that long, and limit is
// the one that counts.
func refusal(reply []any) error {
	if len(reply) == 0 {
		return fmt.Errorf("redislock: empty reply to an acquire")
	}
	label, _ := reply[0].(string)
	if len(reply) == 1 {
		return &driver.Duplicate{Label: label}
	}
	ms, _ := reply[1].(int64) // negative for a foreign key without a TTL
	ms = min(max(0, ms), int64(math.MaxInt64/time.Millisecond))
	held := &driver.Held{Label: label, Remaining: time.Duration(ms) * time.Millisecond}
	held.Exact = len(reply) > 2 && reply[2] == int64(1)
	if len(reply) > 3 {
		limit, _ := reply[3].(int64)
		held.Limit = int(max(0, limit))
	}
	return held
}

// Renew implements driver.Driver. Exclusive claims share a round trip, and shared and limited claims share
// another one. In Cluster, all claims for the same master share one.
func (s *Store) Renew(ctx context.Context, claims []driver.Claim) []error {
	if len(claims) == 0 {
		return nil
	}
	if rdb, ok := s.rdb.(*redis.ClusterClient); ok {
		return s.renewInCluster(ctx, rdb, claims)
	}
	if slices.ContainsFunc(claims, joins) {
		return s.renewApart(ctx, claims)
	}
	return s.runRenewals(ctx, claims, s.renewal)
}

// runRenewals renews all claims by one command, which as makes. By slots, each claim has a command
// of its own, and they share a round trip.
func (s *Store) runRenewals(ctx context.Context, claims []driver.Claim, as func([]driver.Claim) command) []error {
	if len(claims) > 1 && s.layout.bySlot() {
		return s.renewEach(ctx, claims, as)
	}
	cmd := as(claims)
	reply, err := s.run(ctx, cmd)
	if len(claims) > 1 && s.relaid(err) {
		return s.renewEach(ctx, claims, as)
	}
	errs := renewed(&cmd, len(claims), reply, err)
	s.leaveReplica(ctx, errs...)
	return errs
}

func (s *Store) renewEach(ctx context.Context, claims []driver.Claim, as func([]driver.Claim) command) []error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	var errs []error
	for part := range slices.Chunk(claims, share.Most) {
		var commands []command
		for i := range part {
			commands = append(commands, as(part[i:i+1]))
		}
		for i, p := range s.trip(ctx, commands) {
			errs = append(errs, renewed(&commands[i], 1, p.Answer, commands[i].classify(p.Err))...)
		}
	}
	s.leaveReplica(ctx, errs...)
	return errs
}

func (s *Store) renewal(claims []driver.Claim) command {
	parts := make([]string, 2*len(claims), 2*len(claims)+1)
	var n notes
	n.grow(s.prefix, claims)
	for i := range claims {
		c := &claims[i]
		parts[i] = n.of(s.prefix, c.Name)
		parts[len(claims)+i] = n.of(c.Token, magic)
	}
	ttl := claims[0].TTL
	if slices.ContainsFunc(claims, func(c driver.Claim) bool { return c.TTL != ttl }) {
		for i := range claims {
			parts = append(parts, millis(claims[i].TTL))
		}
	} else {
		parts = append(parts, millis(ttl))
	}
	return command{script: renewScript, lasting: prolongs(claims), keys: len(claims), parts: parts}
}

// prolongs says whether a renewal is more than a check.
func prolongs(claims []driver.Claim) bool {
	return slices.ContainsFunc(claims, func(c driver.Claim) bool { return c.TTL > 0 })
}

// renewed reads the answers to c, the renewal of n claims.
func renewed(c *command, n int, reply any, err error) []error {
	if err == nil && reply == int64(1) {
		return make([]error, n) // one answer for all
	}
	answers, ok := reply.([]any)
	ok = ok && len(answers) == n
	if err == nil && !ok {
		err = fmt.Errorf("redislock: unknown reply %T to a renewal", reply)
	}
	errs := make([]error, n)
	for i := range errs {
		if ok {
			errs[i] = c.renewal(answers[i])
		}
		if errs[i] == nil {
			errs[i] = err
		}
	}
	return errs
}

func (c *command) renewal(answer any) error {
	switch answer := answer.(type) {
	case int64:
		if answer == 1 {
			return nil
		}
		return driver.ErrNotOwner
	case string:
		text := c.says(answer)
		return driver.Because(fmt.Errorf("redislock: renewal: %s", text), driver.Reason(explain(text))) //nolint:errorlint // others may have been renewed: not "nothing was executed"
	default:
		return fmt.Errorf("redislock: unknown answer %T to a renewal", answer)
	}
}

// Release implements driver.Driver. It runs one script: the one for owners, who are not in the queue, or the one that
// leaves the queue. If the first finds no owner, it has changed nothing, and the other follows.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	ends, leaves := s.free, s.leave
	switch {
	case joins(c):
		ends, leaves = s.part, s.partQueued
	case c.Keep > 0:
		ends = s.keep
	}
	if _, queued := s.queued.LoadAndDelete(c.Token); !queued || c.Dedup > 0 || c.Keep > 0 { // who leaves something is an owner
		if err := s.end(ctx, c, ends); !errors.Is(err, driver.ErrNotOwner) {
			return err
		}
	}
	return s.end(ctx, c, leaves)
}

func (s *Store) end(ctx context.Context, c driver.Claim, by func(driver.Claim) command) error {
	cmd := by(c)
	reply, err := s.run(ctx, cmd)
	if s.relaid(err) { // it was merged with others
		cmd = by(c)
		reply, err = s.run(ctx, cmd)
	}
	return s.released(cmd, reply, err)
}

// leave gives up c's entry in the queue, and releases the name if c's token owns it.
func (s *Store) leave(c driver.Claim) command {
	line, beats := s.lineKeys(c.Name)
	return command{
		script: leaveScript, tells: true, keys: 4,
		parts: []string{
			s.lockKey(c.Name), line, beats, s.layout.fence(c.Name),
			owner(c), s.subscribers.member(c), s.subscribers.channels(c.Name),
		},
	}
}

// free is release for a claim that leaves nothing, in company if there is some.
func (s *Store) free(c driver.Claim) command {
	if c.Dedup > 0 {
		return s.release(c)
	}
	return s.merged(releases, c)
}

func (s *Store) release(c driver.Claim) command {
	line, beats := s.lineKeys(c.Name)
	cmd := command{script: releaseScript, tells: true, keys: 4, parts: make([]string, 0, 9)}
	cmd.parts = append(cmd.parts, s.lockKey(c.Name), line, beats, s.layout.fence(c.Name))
	if c.Dedup > 0 {
		cmd.keys++
		cmd.parts = append(cmd.parts, s.doneKey(c))
	} else {
		cmd.least = 1
	}
	cmd.parts = append(cmd.parts, owned(c), s.subscribers.channels(c.Name))
	if c.Dedup > 0 {
		cmd.parts = append(cmd.parts, c.Label, millis(c.Dedup))
	}
	return cmd
}

// keep releases c and leaves the name taken.
func (s *Store) keep(c driver.Claim) command {
	cmd := command{script: keepScript, keys: 1, parts: []string{s.lockKey(c.Name)}}
	if c.Dedup > 0 {
		cmd.keys++
		cmd.parts = append(cmd.parts, s.doneKey(c))
	}
	cmd.parts = append(cmd.parts, owner(c), kept(c), millis(c.Keep))
	if c.Dedup > 0 {
		cmd.parts = append(cmd.parts, c.Label, millis(c.Dedup))
	}
	return cmd
}

func (s *Store) released(c command, reply any, err error) error {
	if err != nil {
		return err
	}
	switch reply {
	case int64(1):
		return nil
	case int64(0):
		return driver.ErrNotOwner
	}
	if text, ok := reply.(string); ok {
		c = s.spelled(c)
		return fmt.Errorf("%w: %w", driver.ErrUnmarked, c.says(text))
	}
	return fmt.Errorf("redislock: unknown reply %T to a release", reply)
}
