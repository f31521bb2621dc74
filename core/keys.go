package core

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// scopedBy is c for work on several names: a dedup marker stands for all of them together, in the
// order in which the caller gave them. Without that a transfer from one account would count as done
// because of an earlier one to somebody else.
func (c *config) scopedBy(names []string) *config {
	scoped := *c
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", c.scope, names))
	scoped.scope = "%names-" + hex.EncodeToString(sum[:])
	return &scoped
}
