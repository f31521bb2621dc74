//go:build linux

package chaos

import "slices"

// Mutant is a patch that breaks one promise: of File, Old becomes New. Old is there exactly once.
type Mutant struct {
	Name     string
	File     string // from the root of the repository; or a folder, which ends in a slash
	Old, New string
	Test     string // the package and the test that must find it, the cheapest one that does
	Red      string // or, where the promise is one of processes or servers: the checker that must
	Only     string // the faults in which it shows, with commas; "none" if it needs none
	Service  string // where the locks are; "" is One
	Race     bool   // the test needs the race detector
}

// Mutants are all of them. Together they turn every checker red.
func Mutants() []Mutant {
	return slices.Concat(mutantsOfRuns(), mutantsOfTests(), mutantsOfSQL(), mutantsOfServices(), mutantsOfHTTP(), mutantsOfAdapters())
}
