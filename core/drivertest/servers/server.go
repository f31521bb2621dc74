package servers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	readyBound = 30 * time.Second // for a server to answer, on a loaded machine
	endBound   = 10 * time.Second // for a server to end when it is asked to
	portTries  = 10
)

// product is a kind of server: how it is started, and how it is told to be ready.
type product struct {
	binary, debianPackage string

	args func(port int, dir string) []string
	says []string // one of them is in its log once it serves: who accepts connections may be another server, which has taken the port

	// For servers that need them.
	path    string                                     // of the binary, if it is not the one that Find finds
	tls     bool                                       // it has a port for TLS too; see tlsArgs
	env     []string                                   // beside that of the test
	account string                                     // what it runs as where root runs the test
	fill    func(path, dir string, log *os.File) error // makes what the server starts from, in an empty directory
	quit    os.Signal                                  // ends it without waiting for its clients, if SIGTERM does not
	prepare func(port int, dir string) error           // writes what args name, before each start
}

// Server is a running server that belongs to one test.
//
// Its methods may be called from any goroutine, but one at a time. A method that cannot do
// what it says fails the test and returns.
type Server struct {
	tb      testing.TB
	product product
	path    string
	root    string // holds the data directory and the log
	port    int

	mu   sync.Mutex // protects proc
	proc *process   // nil while it does not run
}

// start launches a server that ends with the test. If the test has failed, it shows the end of the server's log.
func start(tb testing.TB, p product) *Server {
	tb.Helper()
	s, err := launch(tb, p, p.find(tb), p.root(tb))
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	tb.Cleanup(func() {
		if p.account != "" {
			s.Stop() // a killed database would leave System V shared memory behind
		}
		s.Kill() // there is nothing to save
		s.showLog()
	})
	return s
}

func (p product) find(tb testing.TB) string {
	tb.Helper()
	if p.path != "" {
		return p.path
	}
	return Find(tb, p.binary, p.debianPackage)
}

// root is a directory that ends with the test, where the server's account may go.
func (p product) root(tb testing.TB) string {
	tb.Helper()
	if p.account == "" {
		return tb.TempDir()
	}
	root, err := os.MkdirTemp("", "holdfast-"+p.account+"-") //nolint:usetesting // another account may not enter TempDir's parent
	if err == nil {
		tb.Cleanup(func() {
			if err := os.RemoveAll(root); err != nil {
				tb.Errorf("servers: %v", err)
			}
		})
		err = give(root, p.account)
	}
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	return root
}

// ready is nil once the server serves. log is what it has written since its start.
func (p product) ready(addr string, log []byte) error {
	said := func(words string) bool { return bytes.Contains(log, []byte(words)) }
	if !slices.ContainsFunc(p.says, said) {
		return fmt.Errorf("it has not said %q yet", p.says)
	}
	return accepts(addr)
}

// launch starts a server of the product and waits until it answers.
func launch(tb testing.TB, product product, path, root string) (*Server, error) {
	s := &Server{tb: tb, product: product, path: path, root: root}
	// A port that was free a moment ago may be taken by now.
	var err error
	for range portTries {
		if s.port, err = freePort(tb); err != nil {
			return nil, err
		}
		if err = s.start(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Addr is the server's host and port. It stays the same over restarts.
func (s *Server) Addr() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// TLSAddr is where the server speaks TLS, if its arguments say so; see [Redis].
func (s *Server) TLSAddr() string { return "127.0.0.1:" + strconv.Itoa(tlsPort(s.port)) }

// Announced is the address by which other servers find it.
func (s *Server) Announced() string {
	if s.product.tls {
		return s.TLSAddr()
	}
	return s.Addr()
}

// PID is the process id, or 0 while the server does not run.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.proc.hasEnded() {
		return 0
	}
	return s.proc.pid
}

// Stop ends the server as an administrator would, without waiting for its clients, and
// returns once it has ended. A server that does not run stays so.
func (s *Server) Stop() { s.end(func(p *process) { p.terminate(s.product.quit) }) }

// Kill ends the server with SIGKILL, paused or not, and waits until it has ended.
func (s *Server) Kill() { s.end((*process).kill) }

func (s *Server) end(by func(*process)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		by(s.proc)
		s.proc = nil
	}
}

// Pause stops the server's process with SIGSTOP and returns once it has stopped. The kernel
// still accepts connections and data for it.
func (s *Server) Pause() {
	s.tb.Helper()
	s.signal("pausing", stopProcess)
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.tb.Helper()
	s.signal("resuming", continueProcess)
}

func (s *Server) signal(doing string, send func(*os.Process) error) {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		s.tb.Errorf("servers: %s %s, which does not run", doing, s.product.binary)
		return
	}
	if err := send(s.proc.os); err != nil {
		s.tb.Errorf("servers: %s %s: %v", doing, s.product.binary, err)
	}
}

// Restart starts the server again on the same port with the same data directory, after a
// [Server.Stop] if it runs, and waits until it answers. What it remembers is what it has
// written there: with the default arguments, nothing.
func (s *Server) Restart() {
	s.tb.Helper()
	s.Stop()
	err := s.start()
	for deadline := time.Now().Add(endBound); errors.Is(err, errStillEnding) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
		err = s.start()
	}
	if err != nil {
		s.tb.Errorf("servers: restart: %v", err)
	}
}

// RestartEmpty is [Server.Restart] with an empty data directory.
func (s *Server) RestartEmpty() {
	s.tb.Helper()
	s.Stop()
	if err := os.RemoveAll(s.dataDir()); err != nil {
		s.tb.Errorf("servers: restart: %v", err)
		return
	}
	s.Restart()
}

// Log is what the server has written to its output since the test began.
func (s *Server) Log() string {
	log, err := os.ReadFile(s.logFile()) //nolint:gosec // G703: whoever runs the tests says which server
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// showLog shows the end of the server's log if the test has failed.
func (s *Server) showLog() {
	const shown = 20
	if !s.tb.Failed() {
		return
	}
	lines := strings.Split(strings.TrimSpace(s.Log()), "\n")
	last := lines[max(len(lines)-shown, 0):]
	s.tb.Logf("log of %s on %s, its last %d lines of %d:\n%s", s.product.binary, s.Addr(), len(last), len(lines), strings.Join(last, "\n"))
}

func (s *Server) dataDir() string { return filepath.Join(s.root, "data") }
func (s *Server) logFile() string { return filepath.Join(s.root, "log") }

var (
	// errPortTaken says that the server ended because somebody else has its port.
	errPortTaken = errors.New("the port is taken")
	// errStillEnding says that processes of a PostgreSQL server that was killed have not yet
	// noticed.
	errStillEnding = errors.New("its predecessor is still ending")
)

// start runs the process on s.port and waits until it answers.
func (s *Server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own descriptor
	if err := s.makeData(log); err != nil {
		return err
	}
	if s.product.prepare != nil {
		if err := s.product.prepare(s.port, s.dataDir()); err != nil {
			return err
		}
	}
	info, err := log.Stat()
	if err != nil {
		return err
	}
	proc, err := startProcess(s.path, s.product.args(s.port, s.dataDir()), s.product.env, s.product.account, s.dataDir(), log)
	if err != nil {
		return err
	}
	if err := s.awaitReady(proc, int(info.Size())); err != nil {
		proc.kill()
		return err
	}
	s.proc = proc
	return nil
}

// makeData makes the data directory, unless it is there from an earlier start.
func (s *Server) makeData(log *os.File) error {
	if err := os.MkdirAll(s.dataDir(), 0o700); err != nil {
		return err
	}
	if s.product.fill == nil {
		return nil
	}
	if there, err := os.ReadDir(s.dataDir()); err != nil || len(there) > 0 {
		return err
	}
	if err := give(s.dataDir(), s.product.account); err != nil {
		return err
	}
	return s.product.fill(s.path, s.dataDir(), log)
}

// awaitReady looks until the server answers, ends, or the bound has passed. Its log begins
// at offset since.
func (s *Server) awaitReady(proc *process, since int) error {
	deadline := time.Now().Add(readyBound)
	for {
		ended := proc.hasEnded() // before the log is read, so that the log is complete
		log := []byte(s.Log())
		log = log[min(since, len(log)):]
		err := s.product.ready(s.Addr(), log)
		switch {
		case ended && bytes.Contains(bytes.ToLower(log), []byte("address already in use")):
			return fmt.Errorf("%s on %s: %w", s.product.binary, s.Addr(), errPortTaken)
		case ended && bytes.Contains(log, []byte("pre-existing shared memory block")):
			return fmt.Errorf("%s on %s: %w", s.product.binary, s.Addr(), errStillEnding)
		case ended:
			return fmt.Errorf("%s has ended; its log:\n%s", s.product.binary, log)
		case err == nil:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%s is not ready after %v: %w; its log:\n%s", s.product.binary, readyBound, err, log)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
