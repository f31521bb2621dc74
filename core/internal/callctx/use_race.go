//go:build race

package callctx

// checksUse has every use of a bounded context checked; see use.
const checksUse = true
