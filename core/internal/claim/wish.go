// Package claim has one token, from its first command until no command can carry it any more. It knows which
// commands may act without our knowledge, and cleans up behind them.
//
// [Claim] keeps the books and sends nothing, so that every order of commands and answers can be played.
// [Desk] sends.
package claim

import (
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Wish is how somebody wants a name. It does not change, and calls for many names share it.
type Wish struct {
	Label     string
	TTL       time.Duration
	Limit     int           // as in driver.Claim
	Scope     string        // with Dedup
	Dedup     time.Duration // look for the marker of Scope
	MinHold   time.Duration // the name stays taken this long, also after an early release
	NoRenewal bool          // nobody but Confirm renews it
	Degrade   bool          // go on without the service if that answers nobody
	Handoff   string        // hash of the hand-off to take the name over with
}

// Lifetime is how long the backend keeps the name for a holder that nobody renews.
func (w *Wish) Lifetime() time.Duration { return max(w.TTL, w.MinHold) }

// Together says that others can hold the name at the same time.
func (w *Wish) Together() bool { return w.Limit == driver.Readers || w.Limit > 1 }

// Alike says whether a grant that was asked for by w suits v too, which wants the name in the same way (contend.Key), if only the TTL
// differs: a renewal carries that. Whose label is there holds the name: others decide by it what to do.
func (w *Wish) Alike(v *Wish) bool { return w.Plain() && v.Plain() && w.Label == v.Label }

// Plain says that a grant for w is not different from one for anybody else.
func (w *Wish) Plain() bool {
	return w.Dedup == 0 && w.MinHold == 0 && !w.NoRenewal
}

// keep is how long nobody may cut short what is granted.
func (w *Wish) keep() time.Duration {
	if w.NoRenewal {
		return w.Lifetime()
	}
	return w.MinHold
}

// ask is the claim that asks for name.
func (w *Wish) ask(name, token string) driver.Claim {
	return driver.Claim{
		Name: name, Token: token, Label: w.Label, TTL: w.Lifetime(), Limit: w.Limit,
		Scope: w.Scope, Dedup: w.Dedup, Keep: w.keep(), Handoff: w.Handoff, Degrade: w.Degrade,
	}
}
