//go:build unix

package child

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

// guardEnv makes a guard of this program.
const guardEnv = "HOLDFAST_GUARD_OF_A_COMMAND"

// guard is the process that kills a command's group when this process dies.
type guard struct {
	process *os.Process
	pipe    *os.File // its standard input
}

func startGuard() (*guard, error) {
	path, err := self()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe() // a command does not inherit it
	if err != nil {
		return nil, err
	}
	defer read.Close()
	// In a group of its own: who kills this process's group does not kill the guard. It keeps none of this
	// process's streams open, which others may read to the end.
	p, err := orphans.start(path, []string{"holdfast-guard"}, &os.ProcAttr{
		Dir: "/", Env: []string{guardEnv + "=1"}, Files: []*os.File{read, nil, nil}, Sys: &syscall.SysProcAttr{Setpgid: true},
	}, nil)
	if err != nil {
		_ = write.Close()
		return nil, fmt.Errorf("start a guard for the command: %w", err)
	}
	return &guard{p, write}, nil
}

// watch names the group.
func (g *guard) watch(pgid int) {
	_, _ = fmt.Fprintf(g.pipe, "%d\n", pgid) // a guard that was killed cannot be helped
}

// dismiss ends the guard without a kill.
func (g *guard) dismiss() {
	_, _ = g.pipe.WriteString("dismissed\n")
	_ = g.pipe.Close()
	_, _ = g.process.Wait()
}

// Guard is the main function of a guard. It returns false if this process is none. Call it before
// anything else.
func Guard() bool {
	if os.Getenv(guardEnv) == "" {
		return false
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP)
	in := bufio.NewReader(os.Stdin)
	line, _ := in.ReadString('\n')
	pgid, err := strconv.Atoi(strings.TrimSuffix(line, "\n"))
	if err != nil || pgid <= 1 {
		return true // there is no command
	}
	if _, err := in.ReadString('\n'); err != nil { // the pipe has ended, and so has its other side
		_ = syscall.Kill(-pgid, syscall.SIGKILL)
	}
	return true
}
