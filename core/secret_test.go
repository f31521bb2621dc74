package core_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// A token is found by whoever prints with %+v or %#v what it has at hand. So these print
// everything that anybody can have at hand.
func TestNothingThatCanBePrintedHasTheToken(t *testing.T) {
	t.Parallel()
	var out, logged bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&logged, nil))
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name", core.WithLabel("label"))
		claim := b.link.LastClaim()
		_, held := b.other().TryAcquire(b.Context(), "name")
		b.link.Next(lab.OpRenew, lab.ReplyLost)
		check := x.Check(b.Context())
		b.link.Next(lab.OpAcquire, lab.ReplyLost, lab.ReplyLost)
		_, unknown := b.locks.TryAcquire(b.Context(), "other")
		b.ok(b.store.Release(b.Context(), claim))
		lost := x.Release(b.Context())
		things := []any{
			x, x.Context(), b.locks, held, check, unknown, lost, x.Err(), b.store, b.link, claim, &claim,
			[]any{claim, x}, struct{ C any }{claim},
		}
		for _, thing := range things {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
				fmt.Fprintf(&out, verb+"\n", thing)
			}
			if text, err := json.Marshal(thing); err == nil {
				out.Write(text)
			}
			log.Info("thing", "it", thing)
		}
		if text := fmt.Sprint(x); text != fmt.Sprintf(`lease("name", fence %d)`, x.Fence()) {
			b.Error(text)
		}
		token := reflect.ValueOf(claim).FieldByName("Token").String()
		if len(token) != 22 {
			b.Fatalf("a token of %d bytes", len(token))
		}
		synctest.Wait()
		text := out.String() + logged.String()
		if hex := fmt.Sprintf("%x", token); strings.Contains(text, token) || strings.Contains(text, hex) {
			b.Error("the token was printed")
		}
	}, core.WithObserver(func(e core.Event) { log.Info("event", "e", e) }), core.WithLogger(log))
}
