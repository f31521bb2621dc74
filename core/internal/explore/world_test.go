package explore

import (
	"time"

	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/term"
)

// world is what a run begins with.
type world struct {
	name  string
	deaf  bool             // no messages: Wait polls
	told  bool             // no direct grants
	down  [2]time.Duration // from when until when the service says that it cannot answer
	procs [][]caller       // by process
}

// caller is one call.
type caller struct {
	ttl     time.Duration // 3 s if 0
	minHold time.Duration
	maxHold time.Duration
	limit   int    // as in driver.Claim
	scope   string // with Dedup; the work is done, and leaves the marker
	fixed   bool   // no renewal
	once    bool
	leaves  bool          // may leave at any time
	hands   bool          // leaves the name for a hand-off
	takes   bool          // and who takes it over
	comes   time.Duration // when it begins
	works   time.Duration // 10 ms if 0
}

const ms = time.Millisecond

func (c caller) want(w hold.Work) *hold.Want {
	ttl := c.ttl
	if ttl == 0 {
		ttl = 3 * time.Second
	}
	want := &hold.Want{Name: "n", Work: w, Terms: &hold.Terms{Wish: claim.Wish{TTL: ttl, Scope: c.scope, MinHold: c.minHold, Limit: c.limit, NoRenewal: c.fixed}}}
	want.Turn = term.Turn{Every: ttl / 3, MaxHold: c.maxHold}
	if c.fixed {
		want.Turn.Every = 0
	}
	if c.takes {
		want.Handoff = "secret"
	}
	if c.scope != "" {
		want.Dedup = time.Hour
	}
	return want
}

// worlds are small: what goes wrong goes wrong with few.
var worlds = []world{
	{name: "two processes", procs: [][]caller{{{}}, {{}}}},
	{name: "turns", procs: [][]caller{{{works: ms}, {works: 4 * ms}, {works: 4 * ms}, {works: ms}}}},
	{name: "turns beside others", procs: [][]caller{{{works: ms}, {works: ms}}, {{works: ms}}}},
	{name: "two and two", procs: [][]caller{{{}, {}}, {{}, {}}}},
	{name: "leavers", procs: [][]caller{{{}, {leaves: true}, {leaves: true, comes: 5 * ms}}, {{leaves: true}}}},
	{name: "unlike TTLs", procs: [][]caller{{{ttl: 300 * ms, leaves: true, comes: ms}, {ttl: 30 * time.Second, works: 500 * ms, comes: 2 * ms}}, {{works: 5 * ms}}}},
	{name: "unlike TTLs in turn", procs: [][]caller{{{ttl: 30 * time.Second, works: ms}, {ttl: 300 * ms, works: 400 * ms}}, {{}}}},
	{name: "unlike wishes", procs: [][]caller{{{works: ms}, {minHold: 500 * ms, leaves: true}, {fixed: true}}, {{}}}},
	{name: "unlike leavers", procs: [][]caller{{{leaves: true, comes: ms}, {minHold: 500 * ms, leaves: true, comes: 2 * ms}}, {{works: 5 * ms}}}},
	{name: "markers", procs: [][]caller{{{scope: "a"}, {works: ms, leaves: true}, {scope: "a"}}, {{scope: "a"}, {scope: "b"}}}},
	{name: "tries", procs: [][]caller{{{}, {once: true}, {once: true, comes: 5 * ms}}, {{once: true}, {}}}},
	{name: "max hold", procs: [][]caller{{{maxHold: 20 * ms, works: 50 * ms}, {maxHold: 20 * ms, works: 4 * time.Second}}, {{}}}},
	{name: "a hand-off", procs: [][]caller{{{hands: true, works: ms}, {works: ms}}, {{takes: true, once: true, comes: 30 * ms}, {}}}},
	{name: "a limit and long work", procs: [][]caller{{{limit: 2, ttl: 300 * ms, works: 400 * ms}, {limit: 2, ttl: 300 * ms}}, {{limit: 2, ttl: 300 * ms}, {ttl: 300 * ms}}}},
	{name: "long work", procs: [][]caller{{{ttl: 300 * ms, works: 500 * ms}, {ttl: 300 * ms}}, {{ttl: 300 * ms}}}},
	{name: "no renewal", procs: [][]caller{{{fixed: true, ttl: 300 * ms, works: 400 * ms}, {}}, {{fixed: true, ttl: 300 * ms}}}},
	{name: "an outage", down: [2]time.Duration{0, 450 * ms}, procs: [][]caller{{{ttl: 300 * ms}, {ttl: 300 * ms}, {ttl: 300 * ms, comes: 400 * ms}}, {{ttl: 300 * ms, once: true}, {ttl: 300 * ms, comes: 200 * ms}}}},
	{name: "no messages", deaf: true, procs: [][]caller{{{}, {leaves: true}}, {{}}}},
	{name: "no direct grants", told: true, procs: [][]caller{{{}, {works: ms}}, {{}}}},
}
