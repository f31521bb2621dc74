//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/operate"
)

// job is a holdfast run in a process of its own.
type job struct {
	*fleet

	dir      string // its working directory
	cmd      *exec.Cmd
	out, err string // known when it has ended
	ended    chan struct{}
}

// start runs the command, in a directory where its scripts leave files.
func (f *fleet) start(args ...string) *job {
	f.Helper()
	exe, err := os.Executable()
	backendtest.OK(f, err)
	j := &job{fleet: f, dir: f.TempDir(), cmd: exec.Command(exe, args...), ended: make(chan struct{})}
	j.cmd.Env = append(os.Environ(), mainEnv+"=1")
	for k, v := range f.env {
		j.cmd.Env = append(j.cmd.Env, k+"="+v)
	}
	j.cmd.Dir = j.dir
	// Files, since pipes may be kept open by what the command leaves in the background.
	stdout, stderr := j.create("stdout"), j.create("stderr")
	j.cmd.Stdout, j.cmd.Stderr = stdout, stderr
	if f.stderr != nil {
		j.cmd.Stderr = f.stderr
	}
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if f.first {
		firstProcess(f.T, j.cmd)
	}
	backendtest.OK(f, j.cmd.Start())
	go func() {
		defer close(j.ended)
		_ = j.cmd.Wait()
		j.out, j.err = j.text(stdout), j.text(stderr)
	}()
	f.Cleanup(func() { _ = j.cmd.Process.Kill(); <-j.ended })
	return j
}

func (j *job) create(name string) *os.File {
	j.Helper()
	file, err := os.Create(filepath.Join(j.dir, name))
	backendtest.OK(j, err)
	return file
}

func (j *job) text(file *os.File) string {
	defer file.Close()
	b, err := os.ReadFile(file.Name())
	if err != nil {
		j.Error(err)
	}
	return string(b)
}

func (j *job) signal(sig syscall.Signal) {
	j.Helper()
	backendtest.OK(j, j.cmd.Process.Signal(sig))
}

// exit waits for the end.
func (j *job) exit() int {
	j.Helper()
	select {
	case <-j.ended:
	case <-time.After(time.Minute):
		j.Fatal("it does not end")
	}
	return j.cmd.ProcessState.ExitCode()
}

// file waits until a script has written a file, and returns its text.
func (j *job) file(name string) (text string) {
	j.Helper()
	backendtest.Eventually(j, "there is a file "+name, func() bool {
		b, err := os.ReadFile(filepath.Join(j.dir, name))
		text = strings.TrimSpace(string(b))
		return err == nil && text != ""
	})
	return text
}

func (j *job) has(name string) bool {
	_, err := os.Stat(filepath.Join(j.dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// gone waits until no process has the number, or it is a zombie that nobody waits for.
func (j *job) gone(pid string) {
	j.Helper()
	n, err := strconv.Atoi(pid)
	backendtest.OK(j, err)
	backendtest.Eventually(j, "process "+pid+" is gone", func() bool {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		return errors.Is(syscall.Kill(n, 0), syscall.ESRCH) || err == nil && strings.Contains(string(stat), ") Z ")
	})
}

func (f *fleet) free(name string) bool {
	f.Helper()
	return !f.info(name).Held
}

func TestRunHoldsTheNameWhileTheCommandRunsAndEndsAsItDoes(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	j := f.start("run", "job", "--", "sh", "-c", `echo "$HOLDFAST_NAME $HOLDFAST_FENCE" >held; cat <go >/dev/null; echo out; echo err >&2; exit 7`)
	backendtest.OK(t, syscall.Mkfifo(filepath.Join(j.dir, "go"), 0o600))
	name, fence, _ := strings.Cut(j.file("held"), " ")
	if n, err := strconv.ParseUint(fence, 10, 64); name != "job" || err != nil || n == 0 {
		t.Errorf("%q, %q", name, fence)
	}
	host, _ := os.Hostname()
	if info, want := f.info("job"), host+":"+strconv.Itoa(j.cmd.Process.Pid)+" sh"; !info.Held || info.Label != want {
		t.Errorf("%+v, not %s", info, want)
	}
	backendtest.OK(t, os.WriteFile(filepath.Join(j.dir, "go"), []byte("x"), 0o600))
	if status := j.exit(); status != 7 || j.out != "out\n" || j.err != "err\n" {
		t.Errorf("status %d, %q, %q", status, j.out, j.err)
	}
	if !f.free("job") {
		t.Error("still held")
	}
}

// The environment is that of a run around this one. The URL may have a password, and so may what is to be kept from everybody else.
func TestTheCommandFindsItsOwnNameAndFenceAndNotTheLockService(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.env["HOLDFAST_NAME"], f.env["HOLDFAST_FENCE"], f.env["HOLDFAST_PASSWORD"] = "outer", "outer", "hunter2"
	for limit, want := range map[string]string{"1": "HOLDFAST_FENCE HOLDFAST_NAME", "3": "HOLDFAST_NAME"} {
		// env(1) prints what it is given. A shell would show one of two equal names.
		j := f.start("run", "-limit", limit, "inner"+limit, "--", "env")
		status := j.exit()
		var names []string
		for _, entry := range regexp.MustCompile(`(?m)^(HOLDFAST_(?:NAME|FENCE|URL|PASSWORD))=`).FindAllStringSubmatch(j.out, -1) {
			names = append(names, entry[1])
		}
		slices.Sort(names)
		if status != 0 || strings.Join(names, " ") != want || strings.Contains(j.out, "=outer") || strings.Contains(j.out, "hunter2") {
			t.Errorf("-limit %s: status %d, %q, not %q, in %s, %s", limit, status, names, want, j.out, j.err)
		}
	}
}

// These are made one after the other. Nothing but "true", "false" and "exit" runs.
func TestRunEndsAsTheCommandDoesOrSaysWhyNothingRan(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.acquire(f.process("web-7"), "job")
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"-wait 0 job -- touch ran", held, `held by "web-7"`},
		{"-n job touch ran", held, `held by "web-7"`},
		{"-w 0.05 job touch ran", held, `held by "web-7"`},
		{"-n -E 1 job touch ran", 1, `held by "web-7"`},
		{"-conflict-exit-code 0 -wait 1ms job touch ran", 0, `held by "web-7"`},
		{"-q -n job touch ran", held, ""},
		{"-url redis://127.0.0.1:1 other -- touch ran", unavailable, "unavailable"},
		{"-url etcd://u:hunter2@127.0.0.1:1 other -- touch ran", unavailable, "log in"}, // its client does so before anything is asked
		{"job -- no-such-command", notFound, "not found"},
		{"job -- /", unusable, "/"},
		{"-- -other -- false", 1, ""},
		{"-s other -c exit", 0, ""}, // which only a shell has
		{"-done-for 1h report -- false", 1, ""},
		{"-done-for 1h report -- true", 0, ""},
		{"-done-for 1h report -- touch ran", 0, "done already"},
		{"-min-hold 1h quick -- true", 0, ""},
		{"-n quick -- touch ran", held, "held by"},
	} {
		j := f.start(append([]string{"run"}, strings.Fields(c.args)...)...)
		if status := j.exit(); status != c.status || !strings.Contains(j.err, c.says) || c.says == "" && j.err != "" || j.has("ran") {
			t.Errorf("%s: status %d, ran %v, %q", c.args, status, j.has("ran"), j.err)
		}
	}
}

func TestAReleaseThatIsNotConfirmedIsTold(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	f := &fleet{T: t, share: servers.Share{Addr: server.Addr()}, env: map[string]string{"HOLDFAST_URL": "redis://" + server.Addr()}}
	j := f.start("run", "-ttl", "2s", "-done-for", "1h", "job", "--", "sh", "-c", `echo x >began; while ! test -e end; do sleep 0.05; done`)
	j.file("began")
	server.Kill()
	backendtest.OK(t, os.WriteFile(filepath.Join(j.dir, "end"), nil, 0o600))
	if status := j.exit(); status != 0 || !strings.Contains(j.err, "not confirmed") || !strings.Contains(j.err, "others may not find the work done") {
		t.Errorf("status %d, %q", status, j.err)
	}
}

// script writes its own number and that of a child in the same group, and then waits.
const script = `sleep 1000 & echo $! >child; echo $$ >self; `

func TestALossEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for flags, c := range map[string]struct{ does, says string }{
		"": {`trap "touch term; exit 0" TERM; ` + script + `wait`, "lost: taken; the command's exit status was 0\n"},
		// One that does not end is killed after its grace.
		"-grace 1": {`trap "touch term" TERM; ` + script + `while :; do sleep 0.1; done`, "lost: taken; the command's exit status was 137\n"},
	} {
		name := "job" + strconv.Itoa(len(flags))
		j := f.start(append(append([]string{"run", "-ttl", "3s"}, strings.Fields(flags)...), name, "--", "sh", "-c", c.does)...)
		self, child := j.file("self"), j.file("child")
		f.seize(name)
		if status := j.exit(); status != lost || !strings.Contains(j.err, c.says) || !j.has("term") {
			t.Errorf("%q: status %d, %q, told to end: %t", flags, status, j.err, j.has("term"))
		}
		j.gone(self)
		j.gone(child)
	}
}

// A campaign goes on after a loss, unless a signal has asked the command to end. steps are the files that the command leaves, signals,
// the loss, and what lets the command end.
func TestACampaign(t *testing.T) {
	t.Parallel()
	const (
		again = `echo run >>runs; test $(wc -l <runs) -ge 2 && exit 9; `
		deaf  = `while :; do sleep 0.1; done`
		ends  = `while ! test -e end; do sleep 0.05; done; `
		stays = `trap "echo term >term" TERM; trap "exit 3" INT HUP; ` + again + deaf
		heard = `trap "echo x >got" TERM INT QUIT HUP; ` + again + deaf
	)
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "HUP": syscall.SIGHUP}
	for what, c := range map[string]struct {
		flags, does, steps string
		status, runs       int
	}{
		"goes on after a loss":                   {"-campaign -ttl 3s", again + `exec sleep 1000`, "runs loss", 9, 2},
		"ends if INT comes after the loss":       {"-campaign -ttl 3s -grace 1m", stays, "runs loss term INT", 128 + 2, 1},
		"ends if HUP comes after the loss":       {"-campaign -ttl 3s -grace 1m", stays, "runs loss term HUP", 128 + 1, 1},
		"ends if TERM came before the loss":      {"-campaign -ttl 3s -grace 0.2", heard, "runs TERM got loss", 128 + 15, 1},
		"ends if INT came before the loss":       {"-campaign -ttl 3s -grace 0.2", heard, "runs INT got loss", 128 + 2, 1},
		"ends if QUIT came before the loss":      {"-campaign -ttl 3s -grace 0.2", heard, "runs QUIT got loss", 128 + 3, 1},
		"goes on if HUP asked for a reload":      {"-campaign -ttl 3s -grace 0.2", heard, "runs HUP got loss", 9, 2},
		"is none, and TERM came before the loss": {"-ttl 3s -grace 0.2", heard, "runs TERM got loss", lost, 1},
		"ends if it is the release that finds the loss": { // no renewal tells it so soon
			"-campaign -ttl 1m", `trap "echo x >got; ` + ends + `exit 0" TERM; ` + again + deaf, "runs TERM got loss end", 128 + 15, 1,
		},
		"ends as a command does that goes on after a signal": {
			"-campaign", `trap "echo x >got" TERM; ` + again + ends + `exit 5`, "runs TERM got end", 5, 1,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			j := f.start(slices.Concat([]string{"run"}, strings.Fields(c.flags), []string{"job", "--", "sh", "-c", c.does})...)
			for step := range strings.FieldsSeq(c.steps) {
				switch sig := signals[step]; {
				case sig != 0:
					j.signal(sig)
				case step == "loss":
					f.seize("job")
				case step == "end":
					j.create("end").Close()
				default:
					j.file(step)
				}
			}
			if status := j.exit(); status != c.status || strings.Count(j.file("runs"), "run") != c.runs {
				t.Errorf("status %d, %q, %q", status, j.file("runs"), j.err)
			}
		})
	}
}

// A shipper of logs that has died, or that does not read, must not keep the command working, nor take its grace.
func TestACommandGetsItsGraceWhateverBecomesOfStandardError(t *testing.T) {
	t.Parallel()
	for what, stalled := range map[string]bool{"nobody can read": false, "nobody reads": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			read, write, err := os.Pipe()
			backendtest.OK(t, err)
			defer read.Close()
			defer write.Close()
			f.stderr = write
			if stalled {
				fill(t, write)
			}
			j := f.start("run", "-ttl", "3s", "job", "--", "sh", "-c",
				"exec 2>/dev/null; "+script+`trap "sleep 0.3; touch term; exit 0" TERM; while :; do sleep 0.1; done`)
			self, child := j.file("self"), j.file("child")
			if !stalled {
				_ = read.Close()
			}
			f.seize("job")
			j.gone(self)
			j.gone(child)
			if !j.has("term") {
				t.Error("the command had no grace")
			}
			_ = read.Close() // nobody can read any more
			if status := j.exit(); status != lost {
				t.Errorf("status %d", status)
			}
		})
	}
}

// fill leaves no room in a pipe.
func fill(t *testing.T, pipe *os.File) {
	t.Helper()
	backendtest.OK(t, pipe.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	for {
		if _, err := pipe.Write(make([]byte, 1)); err != nil {
			return
		}
	}
}

// seize takes a name from its holder, as an operator would.
func (f *fleet) seize(name string) {
	f.Helper()
	_, err := operate.New(f.process("")).ForceRelease(f.Context(), name, f.info(name).Handle)
	backendtest.OK(f, err)
}

func TestSignalsGoOnToTheCommand(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGQUIT} {
		n := strconv.Itoa(int(sig))
		j := f.start("run", "job"+n, "--", "sh", "-c", `trap "exit 42" `+n+`; `+script+`while :; do sleep 0.1; done`) // a signal just before "wait" is lost in some shells
		j.file("self")
		j.signal(sig)
		if status := j.exit(); status != 42 {
			t.Errorf("%s: status %d, %q", sig, status, j.err)
		}
		j = f.start("run", "job"+n, "--", "sh", "-c", script+`wait`)
		self, child := j.file("self"), j.file("child")
		j.signal(sig)
		if status := j.exit(); status != 128+int(sig) {
			t.Errorf("%s kills: status %d, %q", sig, status, j.err)
		}
		j.gone(self)
		if sig != syscall.SIGINT && sig != syscall.SIGQUIT { // a shell's background process ignores these
			j.gone(child)
		} else if pid, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestASignalEndsTheWait(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.acquire(f.process("web-7"), "job")
	j := f.start("run", "job", "--", "touch", "ran")
	backendtest.Eventually(f, "it waits", func() bool { return len(f.info("job").Line) > 0 })
	j.signal(syscall.SIGTERM)
	if status := j.exit(); status != 128+15 || j.has("ran") || j.err != "" {
		t.Errorf("status %d, %q", status, j.err)
	}
}

func TestNothingIsLeftOfAProcessThatIsKilled(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	j := f.start("run", "-ttl", "2s", "job", "--", "sh", "-c", `trap "" TERM HUP; `+script+`while :; do sleep 0.1; done`)
	self, child := j.file("self"), j.file("child")
	backendtest.OK(t, syscall.Kill(-j.cmd.Process.Pid, syscall.SIGKILL)) // as a shell does, and nothing escapes in its group
	j.exit()
	j.gone(self)
	j.gone(child)
	backendtest.Eventually(f, "the name is free", func() bool { return f.free("job") })
}

func TestWhatWasStoppedForLongerThanTheLeaseDoesNotGoOn(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	j := f.start("run", "-ttl", "3s", "job", "--", "sh", "-c", `echo $$ >self; while :; do echo x >>beats; done`)
	self := j.file("self")
	j.file("beats")
	j.signal(syscall.SIGTSTP)
	backendtest.Eventually(f, "both are stopped", func() bool { return stopped(self) && stopped(strconv.Itoa(j.cmd.Process.Pid)) })
	f.acquire(f.process("next"), "job") // when the TTL is over
	beats := j.file("beats")
	j.signal(syscall.SIGCONT)
	if status := j.exit(); status != lost {
		t.Errorf("status %d, %q", status, j.err)
	}
	if after := j.file("beats"); after != beats {
		t.Errorf("it worked beside the next holder: %d beats, then %d", strings.Count(beats, "x"), strings.Count(after, "x"))
	}
}

func stopped(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && strings.Contains(string(stat), ") T ")
}
