package servers

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// fakeTB records what a test would have been told, and runs no cleanups.
type fakeTB struct {
	testing.TB // Name, TempDir, Cleanup and the like: the real test's

	mu      sync.Mutex // protects what follows
	text    strings.Builder
	failed  bool
	skipped bool
}

// pretend runs f as a test of its own and returns how that ended.
func pretend(t *testing.T, f func(tb testing.TB)) *fakeTB {
	t.Helper()
	tb := &fakeTB{TB: t}
	done := make(chan struct{})
	go func() { // Fatalf and Skip end the goroutine
		defer close(done)
		f(tb)
	}()
	<-done
	return tb
}

func (f *fakeTB) Helper() {}

func (f *fakeTB) Failed() bool { return f.failed }

func (f *fakeTB) Skip(args ...any) {
	f.record(&f.skipped, fmt.Sprint(args...))
	runtime.Goexit()
}

func (f *fakeTB) Errorf(format string, args ...any) {
	f.record(&f.failed, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

func (f *fakeTB) record(outcome *bool, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*outcome = true
	f.text.WriteString(text)
}

func (f *fakeTB) String() string {
	return fmt.Sprintf("failed %t, skipped %t, %q", f.failed, f.skipped, f.text.String())
}
