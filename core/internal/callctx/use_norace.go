//go:build !race

package callctx

// checksUse is off: a use for each call would be the allocation that a bounded context saves.
const checksUse = false
