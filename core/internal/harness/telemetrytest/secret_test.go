package telemetrytest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// Markers of what must not be exported. A request, and so anybody, chooses the first two.
const (
	nameMarker  = "marker-of-a-name"
	labelMarker = "marker-of-a-label"
	scopeMarker = "marker-of-a-scope"
)

// gossip is a lock service whose errors quote whatever it was sent, as those of servers and
// clients do.
type gossip struct {
	*memlock.Store

	broken atomic.Bool
	mu     sync.Mutex // protects tokens
	tokens []string
}

func (g *gossip) fault(c driver.Claim) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	token := reflect.ValueOf(c).FieldByName("Token").String()
	g.tokens = append(g.tokens, token)
	if !g.broken.Load() {
		return nil
	}
	return errors.Join(driver.ErrNotSent, fmt.Errorf("NOPERM SET %s %s %s %s", c.Name, c.Label, c.Scope, token))
}

func (g *gossip) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if err := g.fault(c); err != nil {
		return driver.Grant{}, err
	}
	return g.Store.Acquire(ctx, c)
}

func (g *gossip) Renew(ctx context.Context, claims []driver.Claim) []error {
	errs := make([]error, len(claims))
	for i, c := range claims {
		if errs[i] = g.fault(c); errs[i] == nil {
			errs[i] = g.Store.Renew(ctx, claims[i:i+1])[0]
		}
	}
	return errs
}

func (g *gossip) Release(ctx context.Context, c driver.Claim) error {
	if err := g.fault(c); err != nil {
		return err
	}
	return g.Store.Release(ctx, c)
}

func TestNothingExportedOrLoggedHasANameALabelAScopeOrAToken(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var logged bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}))
		service := &gossip{Store: b.store}
		locks := b.locker(service, core.WithTemplate(template), core.WithLogger(log), b.tel.Option(),
			core.WithLabel(labelMarker), core.WithDedup(time.Hour), core.WithDedupScope(scopeMarker))
		b.everythingHappens(locks, service)
		synctest.Wait()

		asJSON, err := json.Marshal(b.spans.GetSpans())
		b.ok(err)
		for what, text := range map[string]string{
			"metrics": fmt.Sprintf("%+v", b.collect()), "spans": fmt.Sprintf("%+v %s", b.spans.GetSpans(), asJSON), "log": logged.String(),
		} {
			if !strings.Contains(text, template) {
				b.Errorf("no template in the %s: %s", what, text)
			}
			for _, secret := range append(service.tokens, nameMarker, labelMarker, scopeMarker, "NOPERM") {
				if strings.Contains(text, secret) {
					b.Errorf("%q in the %s", secret, what)
				}
			}
		}
		for _, line := range []string{"lease lost", "not confirmed", "unavailable, ", "available again"} {
			if !strings.Contains(logged.String(), line) {
				b.Errorf("no line %q was logged, so nothing was tested", line)
			}
		}
		if len(service.tokens) == 0 || len(service.tokens[0]) != 22 {
			b.Errorf("these are no tokens: %q", service.tokens)
		}
	})
}

// everythingHappens has every kind of event happen to a name with a marker.
func (b *bench) everythingHappens(locks *core.Locker, service *gossip) {
	b.Helper()
	ctx, _ := b.request()
	n := 0
	acquire := func(opts ...core.Option) *core.Lease {
		b.Helper()
		n++
		x, err := locks.Acquire(ctx, fmt.Sprint(nameMarker, n), opts...)
		b.ok(err)
		return x
	}
	x := acquire()
	_, err := b.other().TryAcquire(ctx, x.Name())
	b.is(err, core.ErrHeld)
	_, err = locks.Acquire(ctx, x.Name(), core.WithWait(time.Second))
	b.is(err, core.ErrHeld)
	time.Sleep(ttl)
	b.ok(x.Complete(ctx))
	_, err = locks.TryAcquire(ctx, x.Name())
	b.is(err, core.ErrDuplicate)

	<-acquire(core.WithoutRenewal()).Context().Done()         // expired
	<-acquire(core.WithMaxHold(time.Second)).Context().Done() // max-hold
	taken, unreachable, unconfirmed := acquire(), acquire(), acquire()
	b.store.Lose(taken.Name())
	<-taken.Context().Done()
	service.broken.Store(true)
	b.is(unconfirmed.Release(ctx), core.ErrUnavailable)
	_, err = locks.TryAcquire(ctx, nameMarker)
	b.is(err, core.ErrUnavailable)
	<-unreachable.Context().Done()
	service.broken.Store(false)
	b.ok(acquire().Release(ctx))
}
