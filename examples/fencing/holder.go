package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// sabotageEnv, set to "1", has a holder that should be fenced write without: for the test.
const sabotageEnv = "HOLDFAST_FENCING_SABOTAGE"

// hold is A. It locks the order and works until its context ends, as it will once it has
// been frozen; then it does what it should not do any more: it writes.
func hold(ctx context.Context, address, file string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the parent has gone
	}()
	fenced := os.Getenv(fencedEnv) == "1" && os.Getenv(sabotageEnv) != "1"
	db, err := openOrders(ctx, file)
	if err != nil {
		return err
	}
	defer db.Close()
	rdb := redis.NewClient(&redis.Options{Addr: address})
	defer rdb.Close()
	locks, err := core.New(redislock.New(rdb), core.WithTTL(ttl))
	if err != nil {
		return err
	}
	err = locks.Do(ctx, orderName, func(ctx context.Context) error {
		f, _ := core.FenceFor(ctx, orderName)
		fmt.Println("locked")
		<-ctx.Done()
		switch err := writeOrder(context.WithoutCancel(ctx), db, f, fromA, fenced); {
		case errors.Is(err, fence.ErrStale):
			fmt.Println("refused by", err)
		case err != nil:
			return err
		default:
			fmt.Println("accepted")
		}
		return nil
	})
	if errors.Is(err, core.ErrLost) {
		return nil // as it should be
	}
	return err
}

// fencedEnv is "1" in the environment of a holder that writes with its fence.
const fencedEnv = "HOLDFAST_FENCING_FENCED"

// holder is A, seen from B.
type holder struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startHolder(ctx context.Context, p play) (*holder, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, exe, "holder", p.redis, p.file) //nolint:gosec // G204: the program itself
	cmd.Env = os.Environ()
	if p.fenced {
		cmd.Env = append(cmd.Env, fencedEnv+"=1")
	}
	cmd.Stderr = os.Stderr
	dieWithParent(cmd)
	if _, err := cmd.StdinPipe(); err != nil { // it ends with its parent
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &holder{cmd, bufio.NewScanner(out)}, nil
}

func (h *holder) pid() int { return h.cmd.Process.Pid }

func (h *holder) stop() error { return stopProcess(h.cmd.Process) }
func (h *holder) goOn() error { return continueProcess(h.cmd.Process) }

// line is what it says next.
func (h *holder) line() (string, error) {
	if !h.lines.Scan() {
		return "", errors.New("the holder has ended")
	}
	return h.lines.Text(), nil
}

func (h *holder) expect(want string) error {
	got, err := h.line()
	if err == nil && got != want {
		err = fmt.Errorf("the holder says %q", got)
	}
	return err
}

// end ends it, frozen or not.
func (h *holder) end() {
	_ = h.cmd.Process.Kill() // fails only if it has ended
	_ = h.cmd.Wait()         // it was killed
}
