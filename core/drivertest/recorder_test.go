package drivertest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is the test of a case that may fail.
type recorder struct {
	testing.TB

	mu      sync.Mutex // protects the fields below
	failed  []string
	skipped string
}

// play runs a case on its own in a bubble, and says how it ended.
func play(t *testing.T, c testCase, open func(testing.TB) Config) (failed []string, skipped string) {
	t.Helper()
	var r *recorder
	synctest.Test(t, func(t *testing.T) {
		r = &recorder{TB: t}
		over := make(chan struct{})
		go func() {
			defer close(over)
			c.in(r, open, true)
		}()
		<-over
		time.Sleep(3 * time.Hour) // what the fault has left under way
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed, r.skipped
}

func (r *recorder) record(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, text)
}

func (r *recorder) Helper()                   {}
func (r *recorder) Log(...any)                {}
func (r *recorder) Logf(string, ...any)       {}
func (r *recorder) Error(args ...any)         { r.record(fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, a ...any) { r.record(fmt.Sprintf(f, a...)) }
func (r *recorder) Fatal(args ...any)         { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(f string, a ...any) { r.Errorf(f, a...); runtime.Goexit() }
func (r *recorder) Skip(args ...any) {
	r.mu.Lock()
	r.skipped = fmt.Sprint(args...)
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failed) > 0
}
