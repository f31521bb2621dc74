package drivertest

// promise is what cases are evidence for: a row of the table in docs/backends.md.
type promise string

const (
	oneAtATime   promise = "one holder at a time"
	bounded      promise = "what nobody renews ends with its TTL"
	kept         promise = "renewal keeps a lease"
	ownerOnly    promise = "only the owner renews and releases"
	fencesGrow   promise = "fences grow"
	told         promise = "who waits is served"
	inOrder      promise = "first come, first served"
	takesTurns   promise = "turns are yielded in one step"
	inLine       promise = "who frees a name grants it to the first waiter"
	once         promise = "finished work is not done again"
	minHold      promise = "a name stays taken after its release"
	handedOver   promise = "a lease goes on in another process"
	together     promise = "several names at once"
	readers      promise = "shared holders"
	downgrades   promise = "a writer becomes a reader in one step"
	permits      promise = "a limited number of holders"
	foreign      promise = "other software's values are respected"
	badNetwork   promise = "lost, late and doubled messages"
	cutAcquire   promise = "a connection cut in mid-acquire"
	cutRenewal   promise = "a connection cut in mid-renewal"
	cutRelease   promise = "a connection cut in mid-release"
	outage       promise = "a server killed and restarted"
	degrades     promise = "an outage is told from an answer, and work may go on"
	inspected    promise = "who holds a name is shown, and the name can be taken from the holder"
	frozenHolder promise = "a holder frozen past its TTL"
)

// under returns cases as evidence for p, except those that name another promise themselves.
func under(p promise, lists ...[]testCase) (all []testCase) {
	for _, list := range lists {
		for _, c := range list {
			if c.promise == "" {
				c.promise = p
			}
			all = append(all, c)
		}
	}
	return all
}

// suite returns all cases, in the order in which the table shows their promises.
func suite() []testCase {
	return concat(
		contractCases,
		under(told, coreCases, waitCases),
		under(inOrder, lineCases, lineCoreCases),
		under(takesTurns, yieldCases),
		under(inLine, offerCases),
		under(once, dedupCases),
		under(minHold, keepCases),
		under(handedOver, detachCases),
		under(together, allCases),
		under(readers, sharedCases),
		under(downgrades, downgradeCases),
		under(permits, limitCases),
		under(foreign, foreignCases),
		under(badNetwork, networkCases, abandonCases),
		cutCases,
		under(outage, outageCases, readyCases),
		under(degrades, degradedCases),
		under(inspected, inspectCases, labelCases),
		under(frozenHolder, frozenCases),
	)
}
