package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// workerEnv marks a process as a worker of this one.
const workerEnv = "HOLDFAST_BENCH_WORKER"

// crew is the processes of one run.
type crew struct{ members []*member }

type member struct {
	cmd    *exec.Cmd
	orders *json.Encoder
	answer *json.Decoder
}

// hire starts the processes and gives each its task. They end with ctx at the latest.
func hire(ctx context.Context, t task, procs int) (*crew, error) {
	pipes := make([]struct{ in, out *os.File }, procs) // pipe i leads to process i
	defer func() {
		for _, p := range pipes {
			_ = p.in.Close() // harmless on nil
			_ = p.out.Close()
		}
	}()
	for i := range pipes {
		var err error
		if pipes[i].in, pipes[i].out, err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	c := &crew{}
	for i := range procs {
		t.Proc = i
		m, err := start(ctx, t, pipes[i].in, pipes[(i+1)%procs].out)
		if err != nil {
			return nil, errors.Join(err, c.dismiss())
		}
		c.members = append(c.members, m)
	}
	return c, nil
}

func start(ctx context.Context, t task, extra ...*os.File) (*member, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if t.Contestant == beforeName {
		program, t.Contestant = *flagAgainst, holdfastName
	}
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
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	m := &member{cmd, json.NewEncoder(in), json.NewDecoder(out)}
	return m, m.orders.Encode(t)
}

// await waits until everybody has ended a step.
func (c *crew) await() error {
	for _, m := range c.members {
		var step int
		if err := m.answer.Decode(&step); err != nil {
			return fmt.Errorf("a worker ended early: %w", err)
		}
	}
	return nil
}

// proceed lets everybody begin the next step at the instant.
func (c *crew) proceed(at time.Duration) error {
	for _, m := range c.members {
		if err := m.orders.Encode(at); err != nil {
			return err
		}
	}
	return nil
}

// reports puts together what everybody has seen.
func (c *crew) reports() (report, error) {
	var all report
	for _, m := range c.members {
		var r report
		if err := m.answer.Decode(&r); err != nil {
			return all, fmt.Errorf("a worker ended early: %w", err)
		}
		all.add(r)
	}
	return all, nil
}

// dismiss waits for the processes, which end by themselves or when hire's ctx does.
func (c *crew) dismiss() error {
	var errs []error
	for _, m := range c.members {
		errs = append(errs, m.cmd.Wait())
	}
	return errors.Join(errs...)
}
