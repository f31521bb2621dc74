//go:build race

package core

// checksUse has every use of a bounded context checked; see use.
const checksUse = true
