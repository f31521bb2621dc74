package taskmw_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

// workerEnv makes of the test binary a worker, to be killed. Its value is a worker in JSON.
const workerEnv = "HOLDFAST_TASKMW_TEST_WORKER"

// worker is a process that takes tasks from a queue, each of which never ends.
type worker struct {
	Redis, Queue, Prefix string
	Action               taskmw.Action
	Dedup                time.Duration
	Finish               bool // ends the handler, but never tells asynq
}

// crashTTL is how long the locks of a dead worker stand. Those who live on keep the default,
// which no busy machine makes them lose.
const crashTTL = 3 * time.Second

// rule is that of the workers and of those who come after them.
func rule(action taskmw.Action, dedup time.Duration) taskmw.Option {
	return taskmw.WithType("order:ship", "order:{order_id}", core.WithDedup(dedup)).OnConflict(action)
}

// work is the process. It prints the ID of a task that has begun, and ends with its parent.
func work(spec string) {
	var w worker
	if err := json.Unmarshal([]byte(spec), &w); err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: w.Redis})
	locks, err := core.New(redislock.New(rdb, redislock.WithPrefix(w.Prefix)), core.WithTTL(crashTTL))
	if err != nil {
		panic(err)
	}
	hang := func(ctx context.Context) {
		id, _ := asynq.GetTaskID(ctx)
		fmt.Println(id)
		<-make(chan struct{})
	}
	silence := func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			_ = next.ProcessTask(ctx, t)
			hang(ctx)
			return nil
		})
	}
	mux := muxOf(func(ctx context.Context, _ *asynq.Task) error {
		if !w.Finish {
			hang(ctx)
		}
		return nil
	}, silence, taskmw.Middleware(locks, rule(w.Action, w.Dedup)))
	cfg := (&queue{name: w.Queue}).quick()
	taskmw.Configure(&cfg)
	if err := asynq.NewServerFromRedisClient(rdb, cfg).Start(mux); err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until there is no parent
}

// victim is a worker as its parent sees it.
type victim struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
}

func (q *queue) spawn(t *testing.T, w worker) *victim {
	t.Helper()
	w.Redis, w.Queue, w.Prefix = q.addr, q.name, q.prefix
	spec, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+string(spec))
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	v := &victim{cmd, bufio.NewReader(stdout)}
	t.Cleanup(v.kill)
	return v
}

// begun is the ID of the task that the worker has.
func (v *victim) begun(t *testing.T) string {
	t.Helper()
	line, err := v.stdout.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// kill is SIGKILL: the worker says goodbye to nobody.
func (v *victim) kill() {
	if v.cmd.ProcessState == nil {
		_ = v.cmd.Process.Kill()
		_ = v.cmd.Wait() // it was killed
	}
}

// expire lets asynq's lease of a dead worker's task run out, at once and not in a minute. The
// next server to start delivers the task again. A living worker would renew the lease.
func (q *queue) expire(t *testing.T, id string) {
	t.Helper()
	n, err := q.rdb.ZAddXX(t.Context(), "asynq:{"+q.name+"}:lease",
		redis.Z{Score: float64(time.Now().Add(-time.Hour).Unix()), Member: id}).Result()
	if err != nil || n != 0 { // the number of new members
		t.Fatalf("lease of %s: %d, %v", id, n, err)
	}
}

func TestKilledWorkersTaskIsRunAgainWithoutOverlap(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	v := q.spawn(t, worker{Dedup: time.Hour})
	id := q.enqueue(t, shipTask())
	if got := v.begun(t); got != id {
		t.Fatalf("%s has begun", got)
	}
	v.kill()
	q.expire(t, id)
	var only exclusive
	own := func(next asynq.Handler) asynq.Handler { // until the dead worker's lock has run out
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			err := next.ProcessTask(ctx, task)
			if held, ok := errors.AsType[*core.HeldError](err); err != nil && (!ok || held.Label != "task:order:ship:"+id) {
				t.Errorf("delivered again: %v", err)
			}
			return err
		})
	}
	q.serve(t, q.quick(), muxOf(func(ctx context.Context, _ *asynq.Task) error {
		defer only.enter(t)()
		if left := q.rdb.PTTL(ctx, q.prefix+"order:42").Val(); left <= 0 {
			t.Error("without the lock")
		}
		return nil
	}, own, middleware(t, locktest.Locker(t, q.store()), rule(taskmw.Retry, time.Hour))))
	if info := q.await(t, id, asynq.TaskStateCompleted); info.Retried != 1 {
		t.Errorf("retried %d times", info.Retried)
	}
	q.await(t, q.enqueue(t, shipTask()), asynq.TaskStateCompleted)
	if n := only.runs.Load(); n != 1 {
		t.Errorf("%d runs after the crash, with a duplicate inside the dedup window", n)
	}
}

func TestKilledAfterItsWorkATaskIsNotRunAgainInsideTheDedupWindow(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	v := q.spawn(t, worker{Dedup: time.Hour, Finish: true})
	id := q.enqueue(t, shipTask())
	v.begun(t)
	v.kill()
	q.expire(t, id)
	q.serve(t, q.quick(), muxOf(mustNotRun(t), middleware(t, locktest.Locker(t, q.store()), rule(taskmw.Retry, time.Hour))))
	q.await(t, id, asynq.TaskStateCompleted)
}
