package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// workerEnv marks a process as a worker of this one.
const workerEnv = "HOLDFAST_BENCH_WORKER"

// crew is the processes of one run. After an error nothing more is said to them.
type crew struct {
	members []*member
	err     error
}

type member struct {
	cmd    *exec.Cmd
	orders *json.Encoder
	answer *json.Decoder
}

// hire starts the processes and gives each its task, those of beforeName by the other program. They end with ctx at the latest.
func hire(ctx context.Context, before string, t task) *crew {
	program := os.Args[0]
	if t.Contestant == beforeName {
		program, t.Contestant = before, holdfastName
	}
	pipes := make([]struct{ in, out *os.File }, t.Size.Procs) // pipe i leads to process i
	defer func() {
		for _, p := range pipes {
			_ = p.in.Close() // harmless on nil
			_ = p.out.Close()
		}
	}()
	c := &crew{}
	for i := range pipes {
		if pipes[i].in, pipes[i].out, c.err = os.Pipe(); c.err != nil {
			return c
		}
	}
	for i := range pipes {
		t.Proc = i
		m, err := start(ctx, program, pipes[i].in, pipes[(i+1)%len(pipes)].out)
		if err != nil {
			c.err = err
			return c
		}
		c.members = append(c.members, m)
		if c.err = m.orders.Encode(t); c.err != nil {
			return c
		}
	}
	return c
}

func start(ctx context.Context, program string, extra ...*os.File) (*member, error) {
	cmd := exec.CommandContext(ctx, program) //nolint:gosec // G204: this program, or one of its kind
	cmd.Env = append(os.Environ(), workerEnv+"=1")
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = extra
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &member{cmd, json.NewEncoder(in), json.NewDecoder(out)}, cmd.Start()
}

func (c *crew) each(do func(m *member) error) {
	for _, m := range c.members {
		if c.err == nil {
			c.err = do(m)
		}
	}
}

func (c *crew) hear(answer func() any) {
	c.each(func(m *member) error {
		if err := m.answer.Decode(answer()); err != nil {
			return fmt.Errorf("a worker ended early: %w", err)
		}
		return nil
	})
}

// await waits until everybody has ended a step.
func (c *crew) await() { c.hear(func() any { return new(int) }) }

// proceed lets everybody begin the next step at the instant.
func (c *crew) proceed(at time.Duration) {
	c.each(func(m *member) error { return m.orders.Encode(at) })
}

// reports puts together what everybody has seen.
func (c *crew) reports() (all report) {
	each := make([]report, 0, len(c.members))
	c.hear(func() any {
		each = append(each, report{})
		return &each[len(each)-1]
	})
	for _, r := range each {
		all.add(r)
	}
	return all
}

// dismiss waits for the processes, which end by themselves or when hire's ctx does.
func (c *crew) dismiss() {
	for _, m := range c.members {
		if err := m.cmd.Wait(); c.err == nil {
			c.err = err
		}
	}
}
