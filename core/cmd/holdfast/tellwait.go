package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/operate"
)

// patience is how long somebody at a terminal waits without a word.
const patience = time.Second

// tellWait says whom the command waits for, if somebody is there to read it. It returns a function that
// ends this; it may be called twice.
func (p *program) tellWait(ctx context.Context, s *service, t *terms) (stop func()) {
	if !p.watched || t.quiet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		text := fmt.Sprintf("waiting for %q", clean(t.name))
		if info, err := operate.New(s.locks).Inspect(ctx, t.name); err == nil && info.Label != "" {
			text += ", held by " + clean(info.Label)
		}
		if ctx.Err() == nil {
			p.complain("%s", text)
		}
	})
	return func() { cancel(); telling.Wait() }
}

// warnOfItself notices a command that would wait for the command around it.
func (p *program) warnOfItself(t *terms) {
	if p.getenv("HOLDFAST_NAME") == t.name && !t.shared && t.limit == 1 && !t.once {
		p.complain("warning: a holdfast run around this one holds %q; if that is the same lock service, this one waits for itself", t.name)
	}
}
