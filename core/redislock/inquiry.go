package redislock

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// inquiry is what a Store knows of its server: whether locks can be kept there.
//
// It is asked for with INFO, before the first claim. A server that must not be used refuses the claim. It is asked
// again by the next one, so a setting that was mended needs no restart. Everybody else pays one round trip, once.
//
// Not everybody may send INFO, and not every server has it. Once a claim was decided after a refusal, nobody asks any
// more. A server that is busy may be too slow for the first one: then it is asked by [infoTries] claims.
type inquiry struct {
	over   atomic.Bool
	silent atomic.Int32  // how many claims went on without an answer to INFO, and were decided, or are under way
	turn   chan struct{} // of size one: one caller asks, others wait for that
}

// infoAnswer is what has come to INFO where a claim goes on.
type infoAnswer uint8

const (
	infoFit infoAnswer = iota // or nobody had to ask
	infoRefused
	infoSilent
)

func newInquiry() *inquiry { return &inquiry{turn: make(chan struct{}, 1)} }

// infoBound is how long INFO may take at most. It also leaves half of the caller's time for the claim.
const infoBound = time.Second

// infoTries is how many claims are decided without an answer to INFO before nobody asks any more.
const infoTries = 3

// WithoutServerCheck uses the server whatever it says of itself. Without this option, a Store asks for INFO before its
// first claim. It refuses servers on which a name can get two owners: KeyDB's active replicas, Active-Active databases,
// replicas that accept writes, Garnet, and servers that evict keys when memory is full.
//
// There are reasons to use them all the same. Garnet with --lua-transaction-mode runs scripts one after the other, and
// its INFO does not say so. A server that evicts keys is safe while its memory is never full. With an active replica
// or an Active-Active database, all clients must use the same server, and a failover can lose grants.
//
// The check needs the permission for INFO. Without it, nothing is checked, and nothing else changes.
func WithoutServerCheck() Option { return optionFunc(func(s *Store) { s.inquiry.over.Store(true) }) }

// inquire returns an error if claims must not be made at this server. What else it has heard is for settle.
func (s *Store) inquire(ctx context.Context, name string) (infoAnswer, error) {
	if s.inquiry.over.Load() {
		return infoFit, nil
	}
	if err := driver.NotSent(ctx.Err()); err != nil {
		return infoFit, err
	}
	select {
	case s.inquiry.turn <- struct{}{}:
		defer func() { <-s.inquiry.turn }()
	case <-ctx.Done():
		return infoFit, driver.NotSent(ctx.Err())
	}
	if s.inquiry.over.Load() || s.inquiry.silent.Load() >= infoTries {
		return infoFit, nil
	}
	text, err := s.info(ctx, name)
	if err != nil { // the claim's own error says more
		if _, answered := errors.AsType[redis.Error](err); answered && !driver.Explain(classify(err)).Nobody {
			return infoRefused, nil
		}
		s.inquiry.silent.Add(1)
		return infoSilent, nil
	}
	if why := unfit(text); why != "" {
		return infoFit, driver.NotSent(driver.Refused(driver.Because(errUnfit, why)))
	}
	s.inquiry.over.Store(true)
	return infoFit, nil
}

// decision says whether an error is an answer about the lock, not a failure to get one.
func decision(err error) bool {
	_, held := errors.AsType[*driver.Held](err)
	_, done := errors.AsType[*driver.Duplicate](err)
	return held || done
}

var errUnfit = errors.New("redislock: locks must not be kept on this server")

// settle takes the result of the claim. It ends the inquiry if the server decides claims, though it has refused INFO or
// does not answer it. A claim that was not decided says nothing about INFO: the server cannot be reached.
func (s *Store) settle(heard infoAnswer, err error) {
	if heard == infoFit {
		return
	}
	decided := err == nil || decision(err)
	switch {
	case decided && (heard == infoRefused || s.inquiry.silent.Load() >= infoTries):
		s.inquiry.over.Store(true)
	case !decided && heard == infoSilent:
		s.inquiry.silent.Add(-1)
	}
}

// info asks the server that has the name.
func (s *Store) info(ctx context.Context, name string) (string, error) {
	bound := infoBound
	if deadline, ok := ctx.Deadline(); ok {
		bound = min(bound, time.Until(deadline)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	rdb := s.rdb
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, s.lockKey(name))
		if err != nil {
			return "", err
		}
		rdb = master
	}
	cmd := redis.NewCmd(ctx, "info")
	_ = rdb.Process(ctx, once{cmd}) // the next line has the same error
	return cmd.Text()
}

// unfit says why locks must not be kept on a server that says this of itself, or "".
func unfit(info string) string {
	const allTheSame = " (redislock.WithoutServerCheck uses it all the same)"
	says := make(map[string]string)
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if key == "module" && strings.HasPrefix(strings.ToLower(value), "name=crdt,") {
			key = "crdt"
		}
		says[key] = value
	}
	policy := says["maxmemory_policy"]
	switch {
	case says["role"] == "active-replica":
		return "the server is an active replica of KeyDB: both servers accept writes, so a name gets two owners; set active-replica to no" + allTheSame
	case says["crdt"] != "":
		return "the server is part of an Active-Active database: each region accepts writes, so a name gets two owners; use a database that has one" + allTheSame
	case says["role"] == "slave" && says["slave_read_only"] == "0":
		return "the server is a replica that accepts writes, of which its master knows nothing; send commands to the master" + allTheSame
	case says["garnet_version"] != "":
		return "Garnet runs scripts at the same time, unless it was started with --lua-transaction-mode" + allTheSame
	case policy != "" && policy != "noeviction" && says["maxmemory"] != "0", says["cache_mode"] == "cache":
		return "the server evicts keys when its memory is full, and locks with them; set maxmemory-policy to noeviction" + allTheSame
	default:
		return ""
	}
}
