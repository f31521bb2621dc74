package servers

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// SharedRedis is one redis-server for the tests of a package. The zero value is ready;
// declare one as a variable of the test code.
//
// It runs while at least one test uses it, which costs a package of sequential tests one
// start (some 15 ms) each, and leaves no process and no goroutine behind for a
// leak check in TestMain to find. A test that uses it for all its subtests starts it once.
//
// Tests that share must not disturb each other: FLUSHALL, SCRIPT FLUSH, CONFIG SET, CLIENT
// KILL and faults of the server want a server of their own, from [Redis].
type SharedRedis struct {
	// Args are added to the command line; see [Redis].
	Args []string

	mu     sync.Mutex // protects what follows
	server *Server    // nil while nobody uses it
	users  int
	uses   int // so far: numbers the prefixes
}

// Share is one test's part of a shared server.
type Share struct {
	Addr   string // the server's host and port
	Prefix string // for this test's keys: no other share of the server has it
}

// Use gives the test a share of the server until the test ends, and starts the server if
// nobody uses it.
func (r *SharedRedis) Use(tb testing.TB) Share {
	tb.Helper()
	p := redisProduct(r.Args)
	path := p.find(tb)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil {
		if err := r.start(tb, p, path); err != nil {
			tb.Fatalf("servers: %v", err)
		}
	}
	r.users++
	r.uses++
	tb.Cleanup(r.leave)
	return Share{Addr: r.server.Addr(), Prefix: fmt.Sprintf("t%d:", r.uses)}
}

func (r *SharedRedis) start(tb testing.TB, p product, path string) error {
	dir, err := os.MkdirTemp("", "holdfast-redis-") //nolint:usetesting // it outlives the test that happens to be the first
	if err != nil {
		return err
	}
	r.server, err = launch(tb, p, path, dir)
	if err != nil {
		_ = os.RemoveAll(dir) // the failure above is the one to report
	}
	return err
}

func (r *SharedRedis) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users--; r.users > 0 {
		return
	}
	r.server.Kill()
	_ = os.RemoveAll(r.server.root) // in the system's temporary directory: harmless if it stays
	r.server = nil
}
