package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

// roleEnv makes of the demo one of its children.
const roleEnv = "HOLDFAST_DEMO_ROLE"

// role is what a child needs to know.
type role struct {
	Name    string // "store", "echo", "grpc", "asynq", "holder"
	Store   string // addresses
	Locks   string
	Tasks   string
	Prefix  string // of the locks' keys
	Queue   string // of asynq
	Guarded bool   // with Holdfast
	Blind   bool   // see Book
	Slow    bool   // see shop
}

func roleFromEnv() (r role, ok bool) {
	text, ok := os.LookupEnv(roleEnv)
	if !ok {
		return r, false
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		r.Name = text // unknown, and so reported
	}
	return r, true
}

// run is the main function of a child. It ends with its standard input, that is, when the
// parent closes it or dies, in whatever way.
func (r role) run() int {
	signal.Ignore(os.Interrupt) // Ctrl-C is for the parent, which then ends its children
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error is an end too
		cancel()
		time.Sleep(grace)
		os.Exit(1) // it does not want to end
	}()
	if err := r.serve(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "demo: %s: %v\n", r.Name, err)
		return 1
	}
	return 0
}

func (r role) serve(ctx context.Context) error {
	switch r.Name {
	case "store":
		return serveStore(ctx, r)
	case "echo", "grpc", "asynq":
		return serve(ctx, r)
	case "holder":
		return hold(ctx, r)
	default:
		return errors.New("unknown role")
	}
}

// listen opens a free port of the loopback interface.
func listen(ctx context.Context) (net.Listener, error) {
	var c net.ListenConfig
	return c.Listen(ctx, "tcp", "127.0.0.1:0")
}

// tell says something to the parent.
func tell(v any) { fmt.Println(v) }

// grace is how long a child has to end once it is told to.
const grace = time.Second

// process is a child, seen from its parent.
type process struct {
	cmd   *exec.Cmd
	lines chan string // what it tells
	stop  context.CancelFunc
	ended chan struct{}
}

// start runs the demo as a child that ends with ctx. If it ends before it is told to, fail
// is called.
func start(ctx context.Context, fail context.CancelCauseFunc, r role) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, exe) //nolint:gosec // G204: the program itself
	cmd.Env = append(os.Environ(), roleEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	dieWithParent(cmd) // also where it is stopped, and cannot see that its input has ended
	input, err := cmd.StdinPipe()
	if err != nil {
		stop()
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		stop()
		return nil, err
	}
	cmd.Cancel, cmd.WaitDelay = input.Close, grace
	if err := cmd.Start(); err != nil {
		stop()
		return nil, err
	}
	p := &process{cmd, make(chan string, 8), stop, make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.listen(output)
		err := cmd.Wait() // after the last line was read
		if err == nil {
			err = errors.New("exit status 0")
		}
		if ctx.Err() == nil {
			fail(fmt.Errorf("the %s process has ended too early: %w", r.Name, err))
		}
	}()
	return p, nil
}

func (p *process) listen(output io.Reader) {
	defer close(p.lines)
	for scan := bufio.NewScanner(output); scan.Scan(); {
		select {
		case p.lines <- scan.Text():
		default: // more than anybody waits for
		}
	}
}

// line waits for what the child tells next.
func (p *process) line(ctx context.Context) (string, error) {
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case text, ok := <-p.lines:
		if !ok {
			<-p.ended // so that the reason is in the context's cause
			return "", fmt.Errorf("the child has ended: %w", context.Cause(ctx))
		}
		return text, nil
	}
}

// end ends the child and waits for that.
func (p *process) end() {
	p.stop()
	<-p.ended
}
