//go:build race

package callctx

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// panics says whether f does so with a text, as use does.
func panics(f func()) (yes bool) {
	defer func() { _, yes = recover().(string) }()
	f()
	return false
}

func TestWhateverIsDoneAfterTheCallIsFound(t *testing.T) {
	t.Parallel()
	p := new(Pool)
	for what, does := range map[string]func(ctx context.Context, end func()){
		"Deadline": func(ctx context.Context, _ func()) { ctx.Deadline() },
		"Done":     func(ctx context.Context, _ func()) { ctx.Done() },
		"Err":      func(ctx context.Context, _ func()) { _ = ctx.Err() },
		"Value":    func(ctx context.Context, _ func()) { ctx.Value(p) },
		"AfterFunc": func(ctx context.Context, _ func()) {
			ctx.(interface{ AfterFunc(func()) func() bool }).AfterFunc(func() {}) //nolint:forcetypeassert // Get has made it
		},
		"a second end": func(_ context.Context, end func()) { end() },
	} {
		ctx, end := p.Get(t.Context(), time.Now(), time.Minute)
		end()
		if !panics(func() { does(ctx, end) }) {
			t.Error(what)
		}
	}
}

func TestAContextWhoseTimeRanOutIsNobodyElses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := new(Pool)
		ctx, end := p.Get(t.Context(), time.Now(), time.Second)
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		apart, cancel := context.WithCancel(context.WithValue(ctx, p, nil)) // on a goroutine of package context
		defer cancel()
		<-child.Done()
		<-apart.Done()
		end()
		next, endNext := p.Get(t.Context(), time.Now(), time.Second)
		defer endNext()
		if ctx.Err() == nil || child.Err() == nil || next.Err() != nil {
			t.Errorf("%v, %v, and of the next call %v", ctx.Err(), child.Err(), next.Err())
		}
	})
}

// Where there is a value in between, package context waits for the end of a child on a goroutine of its own.
func TestAGoroutineOfPackageContextMayBeginAfterTheCall(t *testing.T) { //nolint:paralleltest // with one processor, it does
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ctx, end := new(Pool).Get(t.Context(), time.Now(), time.Minute)
	_, cancel := context.WithCancel(context.WithValue(ctx, new(Pool), nil))
	cancel()
	end()
	runtime.Gosched() // here it would panic
}

func TestAChildThatOutlivesTheCallIsFound(t *testing.T) {
	t.Parallel()
	p := new(Pool)
	for _, outlives := range []bool{true, false} {
		ctx, end := p.Get(t.Context(), time.Now(), time.Minute)
		stop := context.AfterFunc(ctx, func() {})
		if !outlives {
			stop()
		}
		if panics(end) != outlives {
			t.Errorf("outlives %t, and found %t", outlives, !outlives)
		}
	}
}
