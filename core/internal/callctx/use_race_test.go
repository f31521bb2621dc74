//go:build race

package callctx

import (
	"context"
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
		<-child.Done()
		end()
		next, endNext := p.Get(t.Context(), time.Now(), time.Second)
		defer endNext()
		if ctx.Err() == nil || child.Err() == nil || next.Err() != nil {
			t.Errorf("%v, %v, and of the next call %v", ctx.Err(), child.Err(), next.Err())
		}
	})
}
