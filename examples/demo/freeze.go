package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// freeze stops a process that holds a lock, for longer than its lease, and returns what was
// not as it should be.
func freeze(ctx context.Context, out *screen, s *service, blind bool) (wrong []error, err error) {
	if !canFreeze {
		out.printf("   skipped: this system has no SIGSTOP\n")
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the frozen holder did not come back in time"))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	store, err := startStore(ctx, fail, blind)
	if err != nil {
		return nil, err
	}
	defer store.close()
	holder, err := start(ctx, fail, role{Name: "holder", Store: store.address, Locks: s.locks, Prefix: s.prefix("frozen")})
	if err != nil {
		return nil, err
	}
	defer holder.end()
	locks, err := core.New(redislock.New(s.rdb, redislock.WithPrefix(s.prefix("frozen"))))
	if err != nil {
		return nil, err
	}
	defer closeLocks(ctx, locks)
	return frozen{out, store.book, holder, locks, time.Now()}.play(ctx)
}

// frozen is the third part of the demo. A is the holder, and B is this process.
type frozen struct {
	out    *screen
	book   *book
	holder *process
	locks  *core.Locker
	began  time.Time
}

func (f frozen) play(ctx context.Context) (wrong []error, err error) {
	first, err := f.suspend(ctx)
	if err != nil {
		return nil, err
	}
	f.tell("B (process %d) wants %q, and waits", os.Getpid(), frozenName)
	lease, err := f.locks.Acquire(ctx, frozenName)
	if err != nil {
		return nil, err
	}
	f.tell("A's lease has run out. B gets the lock, and writes:")
	f.more("fence %d", lease.Fence())
	mine, err := f.overtake(ctx, lease.Fence())
	if err != nil {
		return nil, err
	}
	seen, err := f.resume(ctx)
	if err != nil {
		return nil, err
	}
	now, err := f.book.read(ctx, frozenID)
	if err != nil {
		return nil, err
	}
	if err := lease.Release(ctx); err != nil {
		return nil, err
	}
	expect := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	expect(lease.Fence() > first, "the fence of B, %d, is not larger than that of A, %d", lease.Fence(), first)
	expect(seen.Lost, "the context of A ended without a *core.LostError: %s", seen.Cause)
	expect(seen.Refusal != "", "the late write of A was not refused")
	expect(now == mine, "the order is not as B has written it")
	return wrong, nil
}

// suspend stops A once it is in the midst of its work, and returns A's fence.
func (f frozen) suspend(ctx context.Context) (fence uint64, err error) {
	text, err := f.holder.line(ctx)
	if err != nil {
		return 0, err
	}
	if fence, err = strconv.ParseUint(text, 10, 64); err != nil {
		return 0, err
	}
	f.tell("A (process %d) locks %q with a TTL of %s, and works:", f.holder.cmd.Process.Pid, frozenName, seconds(frozenTTL))
	f.more("fence %d", fence)
	if err := stopProcess(f.holder.cmd.Process); err != nil {
		return 0, err
	}
	f.tell("A gets SIGSTOP and is frozen")
	return fence, nil
}

// overtake changes the order while A is stopped.
func (f frozen) overtake(ctx context.Context, fence uint64) (Order, error) {
	order, err := f.book.read(ctx, frozenID)
	if err != nil {
		return order, err
	}
	order.Paid++
	order.Fence = fence
	return order, f.book.write(ctx, order)
}

// resume lets A go on, and returns what A has seen.
func (f frozen) resume(ctx context.Context) (seen report, err error) {
	if err := continueProcess(f.holder.cmd.Process); err != nil {
		return seen, err
	}
	text, err := f.holder.line(ctx)
	if err != nil {
		return seen, err
	}
	if err := json.Unmarshal([]byte(text), &seen); err != nil {
		return seen, err
	}
	f.tell("A gets SIGCONT. Its context has ended, with the cause:")
	f.more("%s", f.out.verdict(seen.Lost, seen.Cause))
	if seen.Refusal != "" {
		f.tell("A writes all the same. The store refuses:")
		f.more("%s", f.out.good(seen.Refusal))
	} else {
		f.tell("A writes all the same, and %s", f.out.bad("undoes what B has written"))
	}
	return seen, nil
}

func (f frozen) tell(format string, args ...any) {
	f.out.printf("   %5s  %s\n", seconds(time.Since(f.began)), fmt.Sprintf(format, args...))
}

func (f frozen) more(format string, args ...any) {
	f.out.printf("          %s\n", fmt.Sprintf(format, args...))
}
