package core

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Keys puts several key templates where a door takes one, for work that needs several names at once:
//
//	grpcmw.WithMethod("/bank.v1.Accounts/Transfer", core.Keys("account:{from}", "account:{to}"))
//
// The names are taken together, as [Locker.DoAll] does: in one order, so that no two callers wait for
// each other in a circle, and equal names once. The handler runs when it has all of them, and stops
// when one is lost. If one is refused, so is the request. Observers see the templates with a space
// between them.
//
// The result is one string, with a template on each line. The same template twice is [ErrInvalid].
func Keys(templates ...string) string { return strings.Join(templates, "\n") }

// scopedBy is c for work on several names: a dedup marker stands for all of them together, in the
// order in which the caller gave them. Without that a transfer from one account would count as done
// because of an earlier one to somebody else.
func (c *config) scopedBy(names []string) *config {
	scoped := *c
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", c.Scope, names))
	scoped.Scope = "%names-" + hex.EncodeToString(sum[:])
	return scoped.settled()
}
