//go:build linux

package weather

import "slices"

// mutantsOfTests break what no weather shows: a storm has no herd of a thousand, no server that echoes
// secrets or refuses one command, no observer that panics, and too few leases and names. A test does.
func mutantsOfTests() []Mutant {
	return slices.Concat(mutantsOfCore(), mutantsOfQuorums(), mutantsOfOffersByTest(), mutantsOfBackends(), mutantsOfStorms(), mutantsOfHTTP(), mutantsOfAdapters())
}

func mutantsOfQuorums() []Mutant {
	return []Mutant{
		{
			Name: "a node of a quorum is cleaned up once",
			File: "core/redlock/ballot.go",
			Old:  "\tif left <= 0 {\n",
			New:  "\tif left > 0 {\n",
			Test: "core/redlock TestWhatANodeGrantsLateIsGivenBackWithinASecond",
		},
		{
			Name: "a place leaves a quorum's queue when the nodes are slow",
			File: "core/redlock/wait.go",
			Old:  "failed > len(s.nodes)-s.quorum || b.unheard(t, driver.PlaceLife(c.TTL))",
			New:  "true",
			Test: "core/redlock TestAnEntryOutlastsAWaitThatNoNodeAnswersInTime",
		},
		{
			Name: "who asks again gets the fence of another quorum",
			File: "core/redlock/acquire.go",
			Old:  "b.largest(g.Fence)",
			New:  "g.Fence",
			Test: "core/redlock TestAQuorumCountsOnFromTheFenceOfWhoAsksAgain",
		},
	}
}

func mutantsOfCore() []Mutant {
	return []Mutant{
		{
			Name: "a renewal is trusted for what it asks for",
			File: "core/internal/hold/renew.go",
			Old:  "longest > 0",
			New:  "false",
			Test: "core TestARenewalIsTrustedForNoLongerThanTheBackendGives",
		},
		{
			Name: "a renewal begins new turns",
			File: "core/internal/term/renew.go",
			Old:  "x.asked, x.life, x.fails = asked, Trust(ttl), 0",
			New:  "x.asked, x.life, x.fails, x.heard = asked, Trust(ttl), 0, now.Awake()",
			Test: "core/operate TestAForceReleaseNeverHitsALaterTurn",
		},
		{
			Name: "a lease goes local beside work that outlives MaxHold",
			File: "core/fallback/table.go",
			Old:  "if len(n.holders) == 0 {\n\t\tn.local",
			New:  "if len(n.holders) >= 0 {\n\t\tn.local",
			Test: "core TestNobodyGoesLocalBesideWorkThatOutlivesMaxHold",
		},
		{
			Name: "an observer's panic is the service's",
			File: "core/events.go",
			Old:  "value := recover() // nil",
			New:  "value := any(nil) // nil",
			Test: "core TestAnObserverThatFailsLosesEventsAndNothingElse",
		},
		{
			Name: "nobody looks whether a call's context is used after it",
			File: "core/internal/callctx/",
			Old:  "\tif u.again.Load() {\n",
			New:  "\tif false {\n",
			Test: "core TestADriverThatUsesTheContextOfACallAfterItIsFound",
		},
	}
}

func mutantsOfBackends() []Mutant {
	return []Mutant{
		{
			Name: "Close waits for a subscription as long as that takes",
			File: "core/redislock/shard.go",
			Old:  "\t\tcase <-ctx.Done():\n\t\t\treturn fmt.Errorf(\"redislock: a subscription has still",
			New:  "\t\tcase <-make(chan int):\n\t\t\treturn fmt.Errorf(\"redislock: a subscription has still",
			Test: "core/redislock TestCloseHeedsItsContextWhileASubscriptionIsDialled",
		},
		{
			Name: "each slot that is waited for has a connection",
			File: "core/redislock/shard.go",
			Old:  "const perNode = 16",
			New:  "const perNode = slots",
			Test: "core/redislock TestInClusterTheSubscriptionsAtANodeAreBounded",
		},
		{
			Name: "an error has what the server echoes",
			File: "core/redislock/said.go",
			Old:  "\tif err != nil {\n\t\terr = replaced(",
			New:  "\tif err == nil {\n\t\terr = replaced(",
			Test: "core/redislock TestNoErrorHasWhatAServerEchoesOfATokenOrAHandoff",
		},
		{
			Name: "a release fails after it has freed the name",
			File: scripts + "release.lua",
			Old:  "KEYS[5] and redis.pcall('SET', KEYS[5]",
			New:  "KEYS[5] and redis.call('SET', KEYS[5]",
			Test: "core/redislock TestWhoLacksACommandIsNeverToldAnythingWrong",
		},
		{
			Name: "a merged release deletes whatever is there",
			File: scripts + "release_many.lua",
			Old:  "  if there == ARGV[i] then\n    freed",
			New:  "  if there then\n    freed",
			Test: "core/redislock TestAnAnswerIsTheSameWhetherACommandWasMergedOrNot",
		},
		{
			Name: "a name that is released twice in a call is served twice",
			File: scripts + "release_many.lua",
			Old:  "answers[i] == 1 and redis.call('EXISTS', KEYS[3 * i - 1]) == 0 then",
			New:  "answers[i] == 1 then",
			Test: "core/redislock TestANameThatIsReleasedTwiceInOneCallIsServedOnce",
		},
		{
			Name: "a server that is silent is one that answers nonsense",
			File: "core/",
			Old:  "ok && slow.Timeout():",
			New:  "ok && !slow.Timeout():",
			Test: "core/redislock TestTheLogSaysWhatBefellTheServer",
		},
		{
			Name: "a place in line is taken again beside its grant",
			File: scripts + "ask.lua",
			Old:  "if value and not owns and not left then\n",
			New:  "note(me, ARGV[7], now, tonumber(ARGV[5]))\nif value and not owns and not left then\n",
			Test: "core/redislock TestConformanceOnRedis/ALookBesideItsOwnGrantDoesNotQueueTheOwner",
		},
	}
}
