package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/operate"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/examples/demo/shoppb"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// exampleEnv makes the test binary the example.
const exampleEnv = "HOLDFAST_EXAMPLE_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(exampleEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is the service in a process of its own.
type process struct {
	*exec.Cmd
	web, rpc string
	log      strings.Builder // after its first line, once it has ended
	logged   chan struct{}
}

func launch(t *testing.T, redisAddr, work string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), os.Args[0]), logged: make(chan struct{})}
	p.Env = append(os.Environ(), exampleEnv+"=1", "REDIS_URL=redis://"+redisAddr, "WORK="+work, "HTTP_ADDR=127.0.0.1:0", "GRPC_ADDR=127.0.0.1:0")
	out, err := p.StderrPipe()
	noError(t, err)
	noError(t, p.Start())
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	_, ready, _ := strings.Cut(line, " INFO ")
	if _, scanned := fmt.Sscanf(ready, "ready http=%s grpc=%s", &p.web, &p.rpc); err != nil || scanned != nil {
		rest, _ := io.ReadAll(lines)
		t.Fatalf("%s%s%v, %v", line, rest, err, p.Wait())
	}
	go func() {
		defer close(p.logged)
		_, _ = io.Copy(&p.log, lines)
	}()
	return p
}

// ends waits for the end of the process.
func (p *process) ends() error {
	<-p.logged
	return p.Wait()
}

// eventually waits until ok says so.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-tick.C {
		if ok() {
			return
		}
	}
	t.Fatal("not yet: " + what)
}

func send(t *testing.T, method, url string) (code int, retryAfter, body string) {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), method, url, http.NoBody) // the URL is one
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, "", ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return res.StatusCode, res.Header.Get("Retry-After"), string(text)
}

// held says whether work on the order has begun. To take the lock instead could keep the work from it.
func held(t *testing.T, locks *core.Locker, order int) bool {
	t.Helper()
	lock, err := operate.New(locks).Inspect(t.Context(), fmt.Sprint("order:", order))
	return err == nil && lock.Held
}

// A request, a call and a task are at work when SIGTERM comes.
func TestSIGTERMFinishesWhatRunsRefusesWhatComesAndLeavesNoLock(t *testing.T) {
	t.Parallel()
	addr := servers.Redis(t).Addr()
	p := launch(t, addr, "2s")
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = rdb.Close() })
	other := locktest.Locker(t, redislock.New(rdb))
	conn, err := grpc.NewClient(p.rpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	noError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	orders := shoppb.NewOrdersClient(conn)
	refund := func(id int64) error {
		_, err := orders.Refund(t.Context(), &shoppb.RefundRequest{Order: &shoppb.Order{Id: id}})
		return err
	}

	paid, refunded := make(chan string, 1), make(chan error, 1)
	go func() {
		code, _, body := send(t, http.MethodPost, "http://"+p.web+"/orders/1/pay")
		paid <- fmt.Sprint(code, " ", body)
	}()
	go func() { refunded <- refund(2) }()
	client, inspect := asynq.NewClientFromRedisClient(rdb), asynq.NewInspectorFromRedisClient(rdb)
	info, err := client.Enqueue(asynq.NewTask("order:ship", []byte(`{"order_id":3}`)), asynq.Retention(time.Hour))
	noError(t, err)
	for id := range 3 {
		eventually(t, "work begins", func() bool { return held(t, other, id+1) })
	}

	if code, _, body := send(t, http.MethodGet, "http://"+p.web+"/metrics"); code != http.StatusOK || !strings.Contains(body, `distlock_held{distlock_template="order:{id|int}"`) {
		t.Errorf("the metrics: %d, %s", code, body)
	}

	noError(t, p.Process.Signal(syscall.SIGTERM))
	eventually(t, "/readyz tells the load balancer", func() bool {
		code, _, _ := send(t, http.MethodGet, "http://"+p.web+"/readyz")
		return code == http.StatusServiceUnavailable
	})
	if code, after, body := send(t, http.MethodPost, "http://"+p.web+"/orders/4/pay"); code != http.StatusServiceUnavailable || after != "1" || !strings.Contains(body, httpmw.TypeUnavailable) {
		t.Errorf("a new request: %d, Retry-After %q, %s", code, after, body)
	}
	if err := refund(5); status.Code(err) != codes.Unavailable || grpcmw.ReasonOf(err) != grpcmw.ReasonUnavailable {
		t.Errorf("a new call: %v", err)
	}
	if got := <-paid; got != "200 paid" {
		t.Errorf("the request under way: %s", got)
	}
	if err := <-refunded; err != nil {
		t.Errorf("the call under way: %v", err)
	}
	if err := p.ends(); err != nil || strings.Contains(p.log.String(), "ERROR") {
		t.Errorf("%v: %s", err, p.log.String())
	}
	if done, err := inspect.GetTaskInfo("default", info.ID); err != nil || done.State != asynq.TaskStateCompleted {
		t.Errorf("the task under way: %+v, %v", done, err)
	}
	for id := range 5 {
		if name := fmt.Sprint("order:", id+1); !locktest.IsFree(t, other, name) {
			t.Errorf("%s is left behind", name)
		}
	}
}

// What does not end in its time is told to stop, and the task goes back into the queue.
func TestAStopEndsThoughWorkDoesNot(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes as long as the budgets of a stop: make test-all runs it")
	}
	t.Parallel()
	addr := servers.Redis(t).Addr()
	p := launch(t, addr, "1h")
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = rdb.Close() })
	client, inspect := asynq.NewClientFromRedisClient(rdb), asynq.NewInspectorFromRedisClient(rdb)
	info, err := client.Enqueue(asynq.NewTask("order:ship", []byte(`{"order_id":3}`)))
	noError(t, err)
	other := locktest.Locker(t, redislock.New(rdb))
	eventually(t, "the task runs", func() bool { return held(t, other, 3) })
	noError(t, p.Process.Signal(syscall.SIGTERM))
	began := time.Now()
	if err := p.ends(); err == nil || !strings.Contains(p.log.String(), "1 lease still in use") {
		t.Errorf("%v: %s", err, p.log.String())
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s, longer than Kubernetes waits", took)
	}
	if back, err := inspect.GetTaskInfo("default", info.ID); err != nil || back.State != asynq.TaskStatePending || back.Retried != 0 {
		t.Errorf("the task: %+v, %v", back, err)
	}
}

var noError = locktest.OK
