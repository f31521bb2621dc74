package redislock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
)

// Anybody who may publish can send anything on the channel of a waiter.
func TestOnlyTheMessageOfItsOwnLookGrantsAWaiterAnything(t *testing.T) {
	t.Parallel()
	first, last := time.Now(), time.Now().Add(time.Second)
	w := &wait{c: ranked.Claim{Claim: driver.Claim{TTL: 10 * time.Second}}, nonce: "NONCE", looks: []sentLook{{"7", first}, {"9", last}}}
	for message, asked := range map[string]time.Time{
		"": {}, "\x1f\x00": {}, "NONCE": {},
		"8 NONCE 1795000000000000":      {}, // another number
		"7 OTHER 1795000000000000":      {},
		"7  1795000000000000":           {},
		"7 NONCE ":                      {},
		"7 NONCE 0":                     {},
		"7 NONCE x":                     {},
		"7 NONCE 1795000000000000 4097": {}, // too many fences
		"7 NONCE 1795000000000000 0":    {},
		"7 NONCE 1795000000000000":      first,
		"9 NONCE 1795000000000000 32":   last,
	} {
		g, ok := w.granted(message)
		if ok == asked.IsZero() || ok && (g.Fence != 1795000000000000 || g.TTL != driver.PlaceLife(w.c.TTL) || !g.Asked.Equal(asked)) {
			t.Errorf("%q: granted: %t, %+v", message, ok, g)
		}
	}
}
