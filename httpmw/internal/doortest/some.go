package doortest

import "testing"

// RunSome tests a door by some of the cases of [Run], for a framework that is not on net/http: what remains is about
// net/http's own streams, connections and contexts.
func RunSome(t *testing.T, door Door) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Door){
		"Table":        testTable,
		"DedupStatus":  dedupByStatus,
		"DedupRoutes":  dedupOperations,
		"DedupScope":   dedupScope,
		"Sources":      testSources,
		"BadRequests":  testBadRequests,
		"Hostile":      testHostile,
		"SeveralNames": testSeveralNames,
		"Construction": testConstruction,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, door)
		})
	}
}
