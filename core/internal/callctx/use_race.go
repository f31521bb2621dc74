//go:build race

package callctx

// checksUse is on: every use of a bounded context is checked; see use.
const checksUse = true
