//go:build linux

package weather

import "slices"

// Mutant is a patch that breaks one promise: of File, Old becomes New. Old is there exactly
// once.
type Mutant struct {
	Name     string
	File     string // from the root of the repository; or a folder, which ends in a slash
	Old, New string
	Red      string // the checker that must find it
	Test     string // or, if no checker can: the package and the test that must
	Only     string // the faults in which it shows, with commas; "none" if it needs none
	Solo     bool   // it shows where nobody contends
	Alone    int    // or where many names have a goroutine each
	Kinds    bool   // it shows in leases of other kinds
	Long     bool   // it shows where much has to meet
	Service  string // where the locks are; "" is One
}

// Mutants are all of them. Together they turn every checker red.
func Mutants() []Mutant {
	return slices.Concat(mutantsOfOwning(), mutantsOfLines(), mutantsOfOffers(), mutantsOfTokens(), mutantsOfTime(), mutantsOfKinds(), mutantsOfHandoffs(),
		mutantsOfPlaces(), mutantsOfServices(), mutantsOfReplicas(), mutantsOfTests())
}

const scripts = "core/redislock/scripts/"

// mutantsOfOwning: who has a name, and with which fence.
func mutantsOfOwning() []Mutant {
	return []Mutant{
		{
			Name: "a grant does not look who has the name",
			File: scripts + "acquire.lua",
			Old:  "    if string.sub(value, 1, #mine) ~= mine then",
			New:  "    if false then",
			Red:  "belief", Only: "none",
		},
		{
			Name: "a release deletes whatever is there",
			File: scripts + "release.lua",
			Old:  "if value ~= ARGV[1] then",
			New:  "if false then",
			Red:  "owner", Only: "foreign",
		},
		{
			Name: "a renewal does not ask whose the name is",
			File: scripts + "renew.lua",
			Old:  "elseif not there or string.sub(there, 1, #mine) ~= mine then",
			New:  "elseif not there then",
			Red:  "owner", Only: "foreign",
		},
		{
			Name: "a grant that is asked for again is shown as held",
			File: scripts + "acquire.lua",
			Old: "  if value ~= ARGV[1] then\n-- include value.lua\n    local mine = owner(ARGV[1])\n" +
				"    if string.sub(value, 1, #mine) ~= mine then",
			New: "  if value then\n-- include value.lua\n    local mine = owner(ARGV[1])\n    if value then",
			Red: "answers", Only: "drop", Solo: true,
		},
		{
			Name: "a reader who is refused is shown the fence",
			File: scripts + "ask_together.lua",
			Old:  "held(value, width, left)",
			New:  "{string.sub(value, width), left}",
			Red:  "answers", Only: "none", Kinds: true,
		},
		{
			Name: "who is refused is shown the owner's token",
			File: scripts + "acquire.lua",
			Old:  "held(value, #mine, redis.call('PTTL', KEYS[1]))",
			New:  "{string.match(value, '^[^\\31]*'), redis.call('PTTL', KEYS[1])}",
			Red:  "secrets", Only: "none",
		},
		{
			Name: "a fence is printed with 14 digits",
			File: scripts + "mint.lua",
			Old:  "    fence = string.format('%.0f', math.max((tonumber(last) or 0) + 1, now))",
			New: "    fence = string.format('%.0f', tonumber(string.format('%.14g',\n" +
				"      math.max((tonumber(last) or 0) + 1, now))))",
			Red: "linearizable", Only: "ahead",
		},
	}
}

// mutantsOfLines: who waits.
func mutantsOfLines() []Mutant {
	return []Mutant{
		{
			Name: "a waiter that gives up stays in line",
			File: scripts + "leave.lua",
			Old:  "else\n  leave(ARGV[2])\n",
			New:  "",
			Red:  "leaks", Only: "none",
		},
		{
			Name: "a waiter that is served stays in line",
			File: scripts + "serve.lua",
			Old:  "      leave(head)\n",
			New:  "",
			Red:  "orphans", Only: "none",
		},
		{
			Name: "a dead waiter is never dropped",
			File: scripts + "line.lua",
			Old:  "if dead > now then",
			New:  "if dead > 0 then",
			Red:  "liveness", Only: "kill",
		},
		{
			Name: "who cannot subscribe does not stand in line",
			File: "core/redislock/wait.go",
			Old:  "\ttold := hub.await(ctx)\n",
			New:  "\ttold := hub.await(ctx)\n\tif !told {\n\t\t<-ctx.Done()\n\t\treturn driver.Grant{}, ctx.Err()\n\t}\n",
			Red:  "fair", Only: "none", Kinds: true,
		},
		{
			Name: "who is heard of stands in line",
			File: scripts + "line.lua",
			Old:  "if not redis.call('ZSCORE', QUEUE, member) then",
			New:  "if redis.call('HEXISTS', BEATS, member) == 0 then",
			Red:  "fair", Only: "unline", Kinds: true,
		},
		{
			Name: "a name without a TTL is looked at every millisecond",
			File: "core/redislock/wait.go",
			Old:  "if ms, _ := refused[left].(int64); ms >= 0 {",
			New:  "if ms := max(0, refused[left].(int64)); ms >= 0 {",
			Red:  "polls", Only: "persist", Kinds: true,
		},
	}
}

// mutantsOfTokens: what becomes of a token, and of a turn.
func mutantsOfTokens() []Mutant {
	return []Mutant{
		{
			Name: "a caller who goes away cleans nothing up",
			File: "core/internal/claim/end.go",
			Old:  "x := c.cleanup(now, c.placed || c.owned || c.open > 0)",
			New:  "x := Cleanup{}",
			Red:  "orphans", Only: "delay",
		},
		{
			Name: "what is granted late is cleaned up before it comes",
			File: "core/internal/claim/end.go",
			Old:  "x.For = max(0, c.longest-now.Sub(c.since))",
			New:  "x.For = 0",
			Red:  "orphans", Only: "uneven", Kinds: true,
		},
		{
			Name: "the fence is made outside the script",
			File: "core/internal/hold/hold.go",
			Old:  "TTL: ttl, Fence: r.Grant.Fence,",
			New:  "TTL: ttl, Fence: uint64(r.Asked.Awake()),",
			Red:  "linearizable", Only: "none",
		},
		{
			Name: "a turn has the fence of the one before",
			File: "core/internal/term/turn.go",
			Old:  "\t\tx.fence++\n",
			New:  "\t\tx.fence += 0\n",
			Red:  "store", Only: "none",
		},
		{
			Name: "Close releases under running work",
			File: "core/",
			Old:  "leaseUnder(h).closed()\n",
			New:  "x := leaseUnder(h)\n\t\t\tx.closed()\n\t\t\tr.tasks.Go(func() { _ = x.Release(context.Background()) })\n",
			Red:  "early", Only: "none",
		},
	}
}

// mutantsOfTime: how long something is trusted, renewed and waited for.
func mutantsOfTime() []Mutant {
	return []Mutant{
		{
			Name: "trust outlasts the TTL",
			File: "core/internal/term/term.go",
			Old:  "return ttl - ttl/100 - drift }",
			New:  "return ttl + ttl/2 }",
			Red:  "margin", Only: "dark,fade",
		},
		{
			Name: "a name that is gone is taken for a server that is",
			File: "core/internal/term/renew.go",
			Old:  "\tcase NotOwner:\n\t\treturn x.lose(Taken)\n",
			New:  "\tcase NotOwner:\n\t\tx.renewIn(now.Awake(), x.Left(now)/20)\n",
			Red:  "announced", Only: "delete",
		},
		{
			Name: "trust is counted from the answer",
			File: "core/internal/term/term.go",
			Old:  "x := Term{asked: g.Asked,",
			New:  "x := Term{asked: g.Heard,",
			Red:  "margin", Only: "fade", Alone: 24,
		},
		{
			Name: "renewal goes on after the release",
			File: "core/internal/claim/desk.go",
			Old:  "func (d *Desk) Release(ctx context.Context, r driver.Claim, now clock.Reading, within time.Duration) call.Reply {\n",
			New:  "func (d *Desk) Release(ctx context.Context, r driver.Claim, now clock.Reading, within time.Duration) call.Reply {\n\tgo func() {\n\t\tfor range 5 {\n\t\t\ttime.Sleep(r.TTL)\n\t\t\td.Port.Renew([]driver.Claim{r}, time.Second)\n\t\t}\n\t}()\n",
			Red:  "silence", Only: "none",
		},
		{
			Name: "an attempt lasts three TTLs",
			File: "core/driver/driver.go",
			Old:  "func Patience(ttl time.Duration) time.Duration { return min(ttl/3, 2*time.Second) }",
			New:  "func Patience(ttl time.Duration) time.Duration { return 3 * ttl }",
			Red:  "bounded", Only: "dark",
		},
	}
}

// mutantsOfKinds: leases that are not simply exclusive.
func mutantsOfKinds() []Mutant {
	return []Mutant{
		{
			Name: "an operator takes the name from whoever has it",
			File: scripts + "evict.lua",
			Old:  "if not kind or handle(string.sub(value, 1, at - 1)) ~= ARGV[1] then",
			New:  "if not kind then",
			Red:  "seized", Only: "seize", Kinds: true,
		},
		{
			Name: "nobody counts the places that are taken",
			File: scripts + "ask_together.lua",
			Old:  "local full = value and not joins or n > 0 and there >= n",
			New:  "local full = value and not joins",
			Red:  "sharing", Only: "none", Kinds: true,
		},
		{
			Name: "a reader does not see a writer",
			File: scripts + "ask_together.lua",
			Old:  "local full = value and not joins or n > 0 and there >= n",
			New:  "local full = n > 0 and there >= n",
			Red:  "sharing", Only: "none", Kinds: true,
		},
		{
			Name: "a release forgets for how long the name is to stay taken",
			File: scripts + "keep.lua",
			Old:  "redis.call('SET', KEYS[1], ARGV[2] .. since, 'PX', ARGV[3])",
			New:  "redis.call('DEL', KEYS[1])",
			Red:  "kept", Only: "none", Kinds: true,
		},
		{
			Name: "a completion leaves no marker",
			File: scripts + "release.lua",
			Old:  "redis.pcall('SET', KEYS[5], ARGV[3], 'PX', ARGV[4]).err",
			New:  "redis.pcall('DEL', KEYS[5]) and nil",
			Red:  "done", Only: "none", Kinds: true,
		},
		{
			Name: "a turn goes to whoever is next, whatever it wants",
			File: "core/internal/hold/hold.go",
			Old:  "!h.want.Alike(&w.Wish) || !h.term.Next",
			New:  "!h.term.Next",
			Red:  "kept", Only: "none", Kinds: true,
		},
	}
}

// mutantsOfHandoffs: leases that go on in another process.
func mutantsOfHandoffs() []Mutant {
	return []Mutant{
		{
			Name: "a hand-off opens whatever is there",
			File: scripts + "ask.lua",
			Old:  "string.sub(value, 1, #ARGV[8]) == ARGV[8]\nif",
			New:  "true\nif",
			Red:  "belief", Only: "none", Kinds: true,
		},
		{
			Name: "a detached name comes free at once",
			File: "core/handoff.go",
			Old:  "claim.Left{Keep: keep.Truncate(time.Millisecond), Handoff:",
			New:  "claim.Left{Keep: time.Millisecond, Handoff:",
			Red:  "linearizable", Only: "none", Kinds: true,
		},
	}
}

// mutantsOfPlaces: leases that are more, or less, than a grant of their own.
func mutantsOfPlaces() []Mutant {
	return []Mutant{
		{
			Name: "an inner lease outlives the loss of the outer one",
			File: "core/lease.go",
			Old:  "\t\tif !y.ended {\n\t\t\ty.loss, y.until",
			New:  "\t\tif !y.ended && y == x {\n\t\t\ty.loss, y.until",
			Red:  "belief", Only: "flush,dark", Kinds: true,
		},
		{
			Name: "who has the name waits for itself",
			File: "core/reentry.go",
			Old:  "x.engine == r && x.want.Name == name && x.live()",
			New:  "x.engine == r && x.want.Name == name && !x.live()",
			Red:  "answers", Only: "none", Kinds: true,
		},
		{
			Name: "a degraded lease excludes nobody",
			File: "core/fallback/table.go",
			Old:  "\t\tn.local, n.label = newToken(), c.Label\n\t\treturn n.local, nil",
			New:  "\t\treturn newToken(), nil",
			Red:  "belief", Only: "dark,refuse,pause", Kinds: true,
		},
		{
			Name: "a stale hand-off goes local beside a lease",
			File: "core/fallback/table.go",
			Old:  "if len(n.holders) == 0 {\n\t\tn.local",
			New:  "if len(n.holders) == 0 || c.Handoff != \"\" {\n\t\tn.local",
			Red:  "belief", Only: "refuse", Kinds: true, Long: true,
		},
		{
			Name: "a degraded lease does not say so",
			File: "core/lease.go",
			Old:  "return !x.none() && x.hold.Claim.Outage() != nil",
			New:  "return false",
			Red:  "margin", Only: "dark,refuse", Kinds: true,
		},
	}
}

// mutantsOfServices: many servers, and one that knows no scripts.
func mutantsOfServices() []Mutant {
	return []Mutant{
		{
			Name: "a transaction watches nothing",
			File: "core/redislock/transaction.go",
			Old:  "\t}, keys...)\n\tif inCluster",
			New:  "\t})\n\tif inCluster",
			Red:  "linearizable", Only: "delay", Service: Plain,
		},
		{
			Name: "two of five are a quorum",
			File: "core/redlock/redlock.go",
			Old:  "quorum:  len(nodes)/2 + 1,",
			New:  "quorum:  len(nodes) / 2,",
			Red:  "margin", Only: "dark,pause", Service: Redlock,
		},
	}
}

// mutantsOfReplicas: who has to know of a grant.
func mutantsOfReplicas() []Mutant {
	return []Mutant{
		{
			Name: "nobody counts the replicas that have a grant",
			File: "core/redislock/replicas.go",
			Old:  "if n < r.n {",
			New:  "if n < 0 {",
			Red:  "belief", Only: "split", Service: Replicas,
		},
		{
			Name: "one of many needs no replica for a grant",
			File: "core/redislock/commands.go",
			Old:  "cmd := command{script: askScript, lasting: true,",
			New:  "cmd := command{script: askScript, lasting: !joins(c),",
			Red:  "sharing", Only: "split", Service: Replicas, Kinds: true,
		},
	}
}
