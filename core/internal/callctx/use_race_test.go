//go:build race

package callctx

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// found runs f and returns what it panics with.
func found(f func()) (what string) {
	defer func() { what, _ = recover().(string) }()
	f()
	return ""
}

func TestACallThatIsEndedTwiceIsFound(t *testing.T) {
	t.Parallel()
	p := new(Pool)
	_, end := p.Get(t.Context(), time.Now(), time.Minute)
	end()
	if got := found(end); !strings.Contains(got, "ended twice") {
		t.Errorf("%q", got)
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

func TestAnyUseAfterTheCallIsFound(t *testing.T) {
	t.Parallel()
	p := new(Pool)
	for what, uses := range map[string]func(ctx context.Context){
		"Deadline": func(ctx context.Context) { ctx.Deadline() },
		"Done":     func(ctx context.Context) { ctx.Done() },
		"Err":      func(ctx context.Context) { _ = ctx.Err() },
		"Value":    func(ctx context.Context) { ctx.Value(p) },
		"AfterFunc": func(ctx context.Context) {
			ctx.(interface{ AfterFunc(func()) func() bool }).AfterFunc(func() {})() //nolint:forcetypeassert // Get has made it
		},
	} {
		ctx, end := p.Get(t.Context(), time.Now(), time.Minute)
		uses(ctx)
		end()
		if got := found(func() { uses(ctx) }); !strings.Contains(got, "used after the call") {
			t.Errorf("%s: %q", what, got)
		}
	}
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
		if got := found(end); strings.Contains(got, "outlives") != outlives {
			t.Errorf("outlives %t: %q", outlives, got)
		}
	}
}
