package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Pauses before a transaction is tried again because others were quicker.
const (
	firstConflict = time.Millisecond
	lastConflict  = 25 * time.Millisecond
)

// errConflict says that a watched key has changed, so that nothing was executed.
var errConflict = errors.New("redislock: others were quicker, again and again")

// transact lets body read keys and write their new values in one step. It repeats that while others
// change the keys meanwhile, or their slot moves, until ctx ends.
func (s *TxStore) transact(ctx context.Context, body func(tx *transaction) error, keys ...string) error {
	var why error // it has to try again
	for pause := firstConflict; ; pause = min(2*pause, lastConflict) {
		if err := ctx.Err(); err != nil {
			return driver.NotSent(errors.Join(why, err))
		}
		switch err := s.watch(ctx, body, keys); {
		case moving(err):
			why = fmt.Errorf("redislock: the slot of the name is moving to another node: %w", err)
		case errors.Is(err, redis.TxFailedErr):
			why = errConflict
		case why != nil && errors.Is(err, driver.ErrNotSent) && driver.Explain(err).Nobody: // ctx ends, probably
			return errors.Join(why, err)
		default:
			return err
		}
		timer := time.NewTimer(rand.N(pause) + pause/2) //nolint:gosec // G404: a pause is no secret
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return driver.NotSent(errors.Join(why, ctx.Err()))
		}
	}
}

// moving says whether the keys are, or will soon be, at another node of the cluster.
func moving(err error) bool {
	return says(err, "MOVED") || says(err, "ASK") || says(err, "TRYAGAIN")
}

// txFull is what full memory means to a transaction. A Redis 7 refuses each one then, and others all that need memory.
const txFull = "OOM: the server's memory is full (maxmemory), so the transaction was refused, and the lease is as it was: " +
	"without renewals and releases its name comes free when its TTL is over"

// watch makes one try. A Cluster client would make a second one by itself after a lost answer.
func (s *TxStore) watch(ctx context.Context, body func(tx *transaction) error, keys []string) error {
	watch := s.rdb.Watch
	cluster, inCluster := s.rdb.(*redis.ClusterClient)
	if inCluster {
		master, err := cluster.MasterForKey(ctx, keys[0])
		if err != nil {
			return driver.NotSent(err)
		}
		watch = master.Watch
	}
	began := false
	err := watch(ctx, func(tx *redis.Tx) error {
		t := &transaction{tx: tx, ctx: ctx}
		err := body(t)
		began = t.sent
		return err
	}, keys...)
	if inCluster && moving(err) {
		cluster.ReloadState(ctx)
	} else if inCluster {
		look(ctx, cluster, err)
	}
	s.leaveReplica(ctx, err)
	if err != nil && !began && !decision(err) {
		err = driver.NotSent(classify(err))
	}
	switch why, used := strings.CutSuffix(driver.Reason(err), "; without scripts, use redislock.NewTx"); {
	case used:
		err = driver.Because(err, why)
	case says(err, "OOM"):
		err = driver.Because(err, txFull)
	}
	return err
}

// decision says whether an error is an answer about the lock, not a failure to get one.
func decision(err error) bool {
	if errors.Is(err, driver.ErrNotOwner) {
		return true
	}
	_, held := errors.AsType[*driver.Held](err)
	_, done := errors.AsType[*driver.Duplicate](err)
	return held || done
}

// transaction is one try. It is executed only if nothing that it has read has changed.
type transaction struct {
	tx   *redis.Tx
	ctx  context.Context //nolint:containedctx // of the one call that it is part of
	sent bool            // it may have been executed
}

// read sends the commands whose replies body needs for its decision.
func (t *transaction) read(put func(pipe redis.Pipeliner)) error {
	pipe := t.tx.Pipeline()
	put(pipe)
	sent, err := pipe.Exec(t.ctx)
	if !errors.Is(err, redis.Nil) {
		return err
	}
	for _, cmd := range sent { // at least one had nothing to read
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}

// write executes commands together, once. If the server refuses to queue one of them, all are
// discarded: the error is ErrNotSent, with the reason of that one. Any other error of the server
// leaves open what was executed. For a user that may not send MULTI, the commands after it are no
// transaction.
func (t *transaction) write(commands ...[]any) ([]*redis.Cmd, error) {
	trip := newBatch(t.tx.TxPipeline())
	sent := make([]*redis.Cmd, len(commands))
	for i, line := range commands {
		sent[i] = redis.NewCmd(t.ctx, line...)
		trip.put(t.ctx, sent[i])
	}
	t.sent = true
	_, err := trip.pipe.Exec(t.ctx)
	if err == nil || errors.Is(err, redis.TxFailedErr) {
		return sent, err
	}
	discarded := redis.IsExecAbortError(err)
	for _, cmd := range sent { // their errors show no token
		if own := cmd.Err(); own != nil {
			err = own
		}
		if !redis.IsExecAbortError(err) {
			break
		}
	}
	if _, answered := errors.AsType[redis.Error](err); answered && !discarded {
		return sent, driver.Because(fmt.Errorf("redislock: in a transaction: %s", err), driver.Reason(explain(err))) //nolint:errorlint // not "nothing was executed"
	}
	return sent, classify(err)
}

// acknowledged waits for the replicas to have what was written.
func (t *transaction) acknowledged(r replicas) error {
	if r.n == 0 {
		return nil
	}
	trip := newBatch(t.tx.Pipeline())
	ack := r.wait(t.ctx, trip)
	trip.exec(t.ctx)
	return r.heard(ack)
}

// next is the fence after last, or the server's clock, whichever is larger. If last is not a number,
// it counts as 0. If it is too large for a fence, that is an error.
func next(last string, now time.Time) (int64, error) {
	n, _ := strconv.ParseInt(last, 10, 64) // text that is no number counts as no fence
	const most = 1 << 53
	if n >= most {
		return 0, fmt.Errorf("redislock: %d is no fence", n)
	}
	return max(n+1, now.UnixMicro()), nil
}
