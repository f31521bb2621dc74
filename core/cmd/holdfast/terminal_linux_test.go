package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// desk is a terminal at which an interactive shell runs.
type desk struct {
	*fleet
	terminal

	keys *os.File
}

// sit opens a terminal, and starts a shell that knows holdfast.
func (f *fleet) sit() *desk {
	f.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	backendtest.OK(f, err)
	backendtest.OK(f, unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	backendtest.OK(f, err)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	backendtest.OK(f, err)
	defer tty.Close()
	exe, err := os.Executable()
	backendtest.OK(f, err)
	shell := exec.Command("bash", "--norc", "--noprofile", "-i")
	shell.Dir = f.TempDir()
	backendtest.OK(f, os.Symlink(exe, filepath.Join(shell.Dir, "holdfast")))
	shell.Env = append(os.Environ(), mainEnv+"=1", "PS1=$ ", "HISTFILE=")
	for k, v := range f.env {
		shell.Env = append(shell.Env, k+"="+v)
	}
	shell.Stdin, shell.Stdout, shell.Stderr = tty, tty, tty
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	backendtest.OK(f, shell.Start())
	d := &desk{fleet: f, keys: keys}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&d.terminal, keys) }) // until the shell has ended
	f.Cleanup(func() {
		_ = shell.Process.Kill()
		_ = shell.Wait()
		keys.Close()
		reading.Wait()
	})
	return d
}

// types types something, and waits until the terminal shows what is expected, which was not there before.
func (d *desk) types(text, expected string) {
	d.Helper()
	before := len(d.shown())
	_, err := d.keys.WriteString(text)
	backendtest.OK(d, err)
	defer func() {
		if d.Failed() {
			d.Logf("typed %q, shown since then: %q", text, d.shown()[before:])
		}
	}()
	backendtest.Eventually(d, fmt.Sprintf("%q shows %q", text, expected), func() bool {
		return strings.Contains(d.shown()[before:], expected)
	})
}

// typed types something once, and says whether the terminal has shown what is expected by the next prompt.
func (d *desk) typed(text, expected string) bool {
	d.Helper()
	before := len(d.shown())
	d.types(text, "$ ")
	return strings.Contains(d.shown()[before:], expected)
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

func TestTheTerminalIsTheCommandsOwn(t *testing.T) {
	t.Parallel()
	d := newFleet(t).sit()
	d.types("./holdfast run job -- bash -c 'read -p na\"\"me: x </dev/tty; echo hello $x; exit 3'; echo status $?\n", "name:")
	d.types("you\n", "hello you\r\nstatus 3")
	d.types("./holdfast run job -- sh -c 'trap \"echo inter\"\"rupted; exit 5\" INT; echo rea\"\"dy; while :; do sleep 0.1; done'; echo status $?\n", "ready")
	d.types(ctrlC, "interrupted\r\nstatus 5")
	d.types("./holdfast run job -- sh -c 'echo rea\"\"dy; exec sleep 1000'; echo not \"\"here\n", "ready")
	d.types(ctrlC, "^C")
	d.types("echo status \"\"$?\n", "status 130")
	if shown := d.shown(); strings.Contains(shown, "not here") {
		t.Errorf("the shell goes on after Ctrl-C: %q", shown)
	}
}

func TestTheShellControlsItAsAnyJob(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	d := f.sit()
	d.types("./holdfast run -ttl 1m job -- sh -c 'echo rea\"\"dy; read x; echo got $x; exit 4'\n", "ready")
	d.types(ctrlZ, "Stopped")
	d.types("echo bet\"\"ween\n", "between") // the shell has the terminal
	d.types("fg; echo status $?\n", "holdfast run")
	d.types("it\n", "got it\r\nstatus 4")
	d.types("./holdfast run -ttl 1m job -- sh -c 'sleep 0.2; echo from be\"\"hind; read x; echo got $x; exit 6' &\n", "from behind")
	backendtest.Eventually(d, "the shell knows that it wants to read", func() bool { return d.typed("\n", "Stopped") })
	d.types("fg; echo status $?\n", "holdfast run")
	d.types("that\n", "got that\r\nstatus 6")
	d.types("./holdfast run job -- true | cat; echo pi\"\"pe ${PIPESTATUS[0]}\n", "pipe 0")
	d.types("cat >script <<'X'\n./holdfast run job -- sh -c 'echo rea\"\"dy; exec sleep 1000'\necho not he\"\"re\nX\n", "$ ")
	d.types("bash script; echo sta\"\"tus $?\n", "ready")
	d.types(ctrlC, "^C")
	d.types("echo al\"\"ive\n", "alive")
	if shown := d.shown(); strings.Contains(shown, "not here") {
		t.Errorf("a script goes on after Ctrl-C: %q", shown)
	}
}

func TestInAPipelineTheTerminalIsWhosoeverAsksForIt(t *testing.T) {
	t.Parallel()
	d := newFleet(t).sit()
	// A pager, which reads the keys while the command writes.
	d.types("./holdfast run job -- sh -c 'echo te\"\"xt; exec sleep 1000' | bash -c 'read x; read -p \"more \"of\"$x: \" y </dev/tty; echo got $y; exec cat'\n", "oftext: ")
	d.types("it\n", "got it")
	d.types(ctrlC, "^C")
	d.types("echo status \"\"$?\n", "status 130")
	// A command with input of its own that asks for a password.
	d.types("echo in | ./holdfast run job -- bash -c 'read x; read -p pass\"\"word: y </dev/tty; echo hello $x $y; exit 3'; echo status $?\n", "password:")
	d.types("you\n", "hello in you\r\nstatus 3")
}
