//go:build linux

package weather

// mutantsOfOffers: who is granted a name while it waits.
func mutantsOfOffers() []Mutant {
	return []Mutant{
		{
			Name: "a grant in line has the fence of the one before",
			File: scripts + "serve.lua",
			Old:  "local fence = mint(n, time)",
			New:  "local fence = '1795000000000000'",
			Red:  "linearizable", Only: "none",
		},
		{
			Name: "who is granted in line stays in line",
			File: scripts + "serve.lua",
			Old:  "      leave(head)\n",
			New:  "",
			Red:  "orphans", Only: "none",
		},
		{
			Name: "a grant in line is renewed when its place would have been dead",
			File: "core/internal/term/renew.go",
			Old:  "d = max(x.life/3, floor)",
			New:  "d = x.life",
			Red:  "orphans", Only: "none",
		},
	}
}

// mutantsOfOffersByTest are those that no weather shows.
func mutantsOfOffersByTest() []Mutant {
	return []Mutant{
		{
			Name: "any message with the right number is a grant",
			File: "core/redislock/wait.go",
			Old:  "strings.CutPrefix(rest, w.nonce+\" \")",
			New:  "strings.CutPrefix(rest, rest[:min(len(rest), len(w.nonce))]+\" \")",
			Test: "core/redislock TestConformanceOnRedis/AForgedMessageGrantsNothing",
		},
		{
			Name: "the offer that is executed last stands",
			File: scripts + "note.lua",
			Old:  "if not last or tonumber(last) <",
			New:  "if not last or 0 <",
			Test: "core/redislock TestTheNoteOfAnOlderLookNeverReplacesANewerOne",
		},
	}
}
