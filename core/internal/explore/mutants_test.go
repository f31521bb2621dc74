package explore

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var (
	withMutants = flag.Bool("explore.mutants", false, "break one rule after the other, and expect to see it")
	oneMutant   = flag.String("explore.mutant", "", "the mutant to play; all by default")
)

// mutant is a rule that is broken: in a file of core/internal, one text is replaced by another.
type mutant struct {
	rule, file, old, by string

	world string // to be played whole; "" for all worlds
}

// mutants are the rules that the explorer has to see broken. Those that it cannot see are in a list of their own, with the reason.
var mutants = []mutant{
	// claim
	{"another TTL only while nothing is open", "claim/claim.go", "return c.open+c.renews == 0 || c.sent == ttl && c.get().keep == keep", "return true", "unlike TTLs"},
	{"a command under way counts as open", "claim/claim.go", "	c.open++\n	c.placed", "	c.placed", ""},
	{"a dropped claim that stands in the queue leaves it", "claim/end.go", "c.placed || c.open > 0)", "c.open > 0)", ""},
	{"a dropped claim whose grant did not suit is released", "claim/claim.go", "	case m.Kind == driver.Done:\n		c.placed = true\n", "	case m.Kind == driver.Done:\n		c.placed = false\n", "unlike leavers"},
	{"a dropped claim is cleaned up behind an open command", "claim/end.go", "c.placed || c.open > 0)", "c.placed)", ""},
	{"clean-up goes on for the longest TTL", "claim/end.go", "x.For = max(0, c.longest()-now.Sub(c.get().since))", "x.For = 0", ""},
	{"a late grant after the end is given back", "claim/claim.go", "	default:\n		return c.settled()\n", "	default:\n		return false\n", ""},
	{"a late grant during the release is looked at again", "claim/claim.go", "		c.open--\n		c.placed = true\n", "		c.open--\n", ""},
	{"a late grant during the work is left alone", "claim/claim.go", "case !granted, c.phase == held:\n		c.open--\n		return false", "case !granted:\n		c.open--\n		return false\n	case c.phase == held:\n		return true", ""},
	{"who is queued late is taken out of the queue", "claim/claim.go", "		c.placed = true\n		return c.settled()", "		return false", ""},
	{"MinHold without an answer is not cleaned up", "claim/end.go", "	if mayKeep && !confirmed {\n		c.phase = kept\n		return Cleanup{}\n	}\n", "", ""},
	// term
	{"trust counts from before the request", "term/term.go", "x := Term{asked: g.Asked,", "x := Term{asked: g.Heard,", ""},
	{"trust ends before the TTL", "term/term.go", "return ttl - ttl/100 - drift }", "return ttl }", ""},
	{"a renewal counts from before it was sent", "term/renew.go", "x.asked, x.life, x.fails = asked,", "x.asked, x.life, x.fails = now,", ""},
	{"an answer after the end of trust revives nothing", "term/renew.go", "if loss := x.Look(now); x.state != Held {\n		return loss\n	}", "", ""},
	{"no release while a renewal is under way", "term/turn.go", "return !x.flight && x.Stands(now)", "return x.Stands(now)", ""},
	{"nothing is sent once the time is over", "term/turn.go", "return !x.flight && x.Stands(now)", "return !x.flight", ""},
	{"not the owner after an open release is a success", "term/turn.go", "a == NotOwner && open && x.Stands(now):", "a == NotOwner && open && !x.Stands(now):", ""},
	{"a turn takes the next fence", "term/turn.go", "		x.fence++\n", "", ""},
	{"as many turns as there are fences", "term/turn.go", "x.left == 0 || ", "", ""},
	{"turns are over after 5 ms", "term/turn.go", "now.Awake().Sub(x.heard) >= Turns || ", "", ""},
	{"a turn needs a third of the trust", "term/turn.go", "x.Left(now) < x.life/3", "false", ""},
	{"no turn after MaxHold", "term/turn.go", "|| now.Awake() >= x.stop", "", ""},
	{"a renewal never cuts short", "hold/renew.go", "h.rest(now), h.term.Least(now))", "h.rest(now))", ""},
	{"trust comes from what was sent", "hold/hold.go", "	if r.Grant.TTL > 0 {\n		ttl = min(ttl, r.Grant.TTL)\n	}\n", "", ""},
	{"the term of a renewal is that of its claim", "hold/renew.go", "h.Claim.Renewed(m, c.TTL)\n	h.mu.Lock()\n", "h.Claim.Renewed(m, c.TTL)\n	h.mu.Lock()\n	ttl = h.want.TTL\n", ""},
	{"MaxHold stops the work", "term/term.go", "		return MaxHold\n", "		return None\n", ""},
	// hold
	{"a lost hold tells its keeper", "hold/hold.go", "		h.site.Keeper.Lost(h)\n", "", ""},
	{"the contexts end with the trust", "hold/hold.go", "		h.want.Work.Stop(why)\n", "", ""},
	{"a turn only with nothing in doubt", "hold/hold.go", "	if !h.Claim.Quiet() {\n		return false\n	}\n", "", ""},
	{"a turn for who wants the same", "hold/hold.go", "!h.want.Alike(&w.Wish) || !h.term.Next", "!h.term.Next", ""},
	{"those who wait for a renewal are told of its end", "hold/renew.go", "		close(h.idle)\n", "", ""},
	{"a hold that nobody received forgoes MinHold", "hold/hold.go", "	terms.MinHold = 0\n", "", ""},
	{"MinHold keeps the name", "hold/end.go", "max(e.left.Keep, e.hold.rest(now))", "e.left.Keep", ""},
	// queue
	{"one asks at most", "queue/queue.go", "return !l.asker && !l.held", "return l.first == nil && !l.held", ""},
	{"nobody asks beside a hold", "queue/queue.go", "return !l.asker && !l.held", "return !l.asker", ""},
	{"who is refused stands first, and somebody asks", "queue/queue.go", "	w.join(l, nil)\n	return l.wake()", "	w.join(l, nil)\n	return false", ""},
	{"somebody asks after a call has gone", "queue/queue.go", "	l.tell()\n	return l.wake()\n}\n\n// Outcome", "	l.tell()\n	l.prune()\n	return false\n}\n\n// Outcome", ""},
	{"somebody asks once the name is vacated", "queue/asker.go", "	if !l.wake() {\n		return nil\n	}\n	return l\n", "	l.prune()\n	return nil\n", ""},
	{"what is given to who leaves is passed on", "queue/queue.go", "return word, nil", "return Word[H]{}, nil", ""},
	{"the last one who leaves breaks the round off", "queue/queue.go", "broken, l.broken = l.broken, nil", "broken, l.broken = nil, nil", ""},
	{"the name stays taken until it is vacated", "queue/asker.go", "	if l == nil || l.first == nil || !l.held || l.has != h {\n		return false, nil\n	}", "	if l == nil {\n		return false, nil\n	}\n	if l.first == nil || !l.held || l.has != h {\n		l.held = false\n		return false, nil\n	}", ""},
	{"early, the asker begins once", "queue/asker.go", "		l.asker = true\n		return false, l", "		return false, l", ""},
	// contend
	{"an asker that nobody needs drops its claim", "contend/asker.go", "		s := a.drop(now)\n		s.Do = Over\n		return s", "		return Step{Do: Over}", ""},
	{"unlike wishes need another token while one is open", "contend/asker.go", ", !a.hold.Claim.May(&w.Want.Wish, now):", ":", ""},
	{"what nobody wants is given back", "contend/asker.go", "		return a.drop(r.Now.Awake())\n", "		a.anew()\n", ""},
	{"a grant goes to whom it suits only", "contend/asker.go", "if w.Want.Wish != a.want.Wish && !a.want.Alike(&w.Want.Wish) {", "if false {", ""},
	{"a marker ends those of its scope only", "contend/asker.go", "if w.Want.Dedup > 0 && w.Want.Scope == a.want.Scope {", "if true {", ""},
	{"a marker ends all of its scope", "contend/asker.go", "if w.Want.Dedup > 0 && w.Want.Scope == a.want.Scope {", "if false {", ""},
	{"a grant that is nearly over is asked for again", "contend/asker.go", "if !hold.Fresh(r, ttl) {", "if false {", ""},
	{"a grant that is nearly over is asked for again by a call", "contend/caller.go", "m.Kind == driver.Done && hold.Fresh(r, c.Want.TTL) {", "m.Kind == driver.Done {", ""},
	{"who gives up leaves his claim to the asker or drops it", "contend/caller.go", "s.Behind, s.Clean = &c.hold.Claim, c.hold.Claim.Drop(now)", "_ = now", ""},
	{"silence ends a wait after a TTL only", "contend/asker.go", "if since >= w.Want.TTL && a.patient", "if since >= 0 && a.patient", ""},
	{"a try waits for the answer under way", "contend/caller.go", "return Step{Do: Watch, Changed: v.Changed, For: left}", "return Step{Do: Over, Err: ErrSilent}", ""},
	{"work that was stopped ends with what it was told", "contend/leaver.go", "hold.Outcome{Result: term.WasLost, Loss: loss}", "hold.Outcome{Result: term.Freed, Loss: loss}", ""},
	{"a marker is not left by a turn", "contend/leaver.go", "return l.left == (claim.Left{}) && l.hold", "return l.hold", ""},
	{"a hand-off passes the queue", "contend/place.go", "	case w.Handoff != \"\": // it passes the queue: the name is not free, but kept for it\n		return w.Name + \"\\x00\" + w.Handoff\n", "", "a hand-off"},
	{"a limit has a line of its own", "contend/place.go", "	case w.Together():\n", "	case false:\n", "a limit and long work"},
	{"a lost hold vacates its name", "contend/leaver.go", "return p.vacate(h, h.Ended(now), now)", "return Step{Do: Over, Behind: &h.Claim, Clean: h.Ended(now)}", ""},
}

// unseen are rules that the explorer cannot see broken, and why.
var unseen = map[string]string{
	"a dropped claim is cleaned up behind an open command":     "the repeated clean-up does the same 20 ms later",
	"a late grant after the end is given back":                 "the repeated clean-up does the same a little later; the tests of claim see it",
	"an answer after the end of trust revives nothing":         "the watchdog of the model is never late; the tests of term see it",
	"no turn after MaxHold":                                    "the watchdog of the model is never late; the tests of term see it",
	"a turn needs a third of the trust":                        "a grant has that when it is heard, and turns last 5 ms",
	"a turn only with nothing in doubt":                        "what an open command can do to a turn, the rule of TTLs prevents as well",
	"one asks at most":                                         "while nobody waits, the asker is about to end; a second command costs only itself",
	"nobody asks beside a hold":                                "it is refused; that costs a command",
	"the name stays taken until it is vacated":                 "whoever asks is refused, or has it after the release; that costs a command",
	"MinHold without an answer is not cleaned up":              "that takes three lost messages; the tests of claim see it",
	"a grant that is nearly over is asked for again":           "nobody in the model waits so long for an answer; a test of contend sees it",
	"a grant that is nearly over is asked for again by a call": "as above",
	"a marker is not left by a turn":                           "a grant that was asked for with a marker has no turns; a test of contend sees it for hand-offs",
	"who is queued late is taken out of the queue":             "that takes three faults; long walks and the tests of claim see it",
	"no release while a renewal is under way":                  "a renewal that comes later finds that its token owns nothing",
	"nothing is sent once the time is over":                    "a release compares the token, so a late one only costs a command",
}

// TestTheExplorerSeesEachRuleBroken breaks one rule after the other in an overlay of the sources, and plays.
func TestTheExplorerSeesEachRuleBroken(t *testing.T) {
	t.Parallel()
	var files = map[string]string{}
	for _, m := range mutants {
		if _, ok := files[m.file]; !ok {
			text, err := os.ReadFile(filepath.Join("..", m.file))
			if err != nil {
				t.Fatal(err)
			}
			files[m.file] = string(text)
		}
		if n := strings.Count(files[m.file], m.old); n != 1 {
			t.Errorf("%s: found %d times in %s", m.rule, n, m.file)
		}
	}
	if !*withMutants && *oneMutant == "" {
		t.Skip("plays mutants only with -explore.mutants")
	}
	killed := 0
	for _, m := range mutants {
		if *oneMutant != "" && m.rule != *oneMutant {
			continue
		}
		out, alive := m.play(t, strings.Replace(files[m.file], m.old, m.by, 1))
		why := unseen[m.rule]
		switch {
		case !alive:
			killed++
			t.Logf("killed: %-60s %s", m.rule, out)
		case why != "":
			t.Logf("unseen: %-60s %s", m.rule, why)
		default:
			t.Errorf("survives: %s", m.rule)
		}
	}
	t.Logf("%d of %d killed", killed, len(mutants))
}

// play runs the explorer with one file replaced. It says by what it was seen, or that it is alive.
func (m mutant) play(t *testing.T, text string) (how string, alive bool) {
	t.Helper()
	dir := t.TempDir()
	path, err := filepath.Abs(filepath.Join("..", m.file))
	if err != nil {
		t.Fatal(err)
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	replace, _ := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	for file, content := range map[string][]byte{changed: []byte(text), overlay: replace} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	most := *most
	if m.world != "" {
		most = 1 << 20
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-overlay", overlay, "-run", "TestEverySchedule", "-timeout", "9m", ".", "-args", "-explore.world", m.world, "-explore.most", strconv.Itoa(most))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "", true
	}
	if strings.Contains(string(out), "build failed") {
		t.Errorf("%s: does not build:\n%s", m.rule, out)
	}
	for line := range strings.Lines(string(out)) {
		if i := strings.Index(line, "world "); i >= 0 {
			return strings.TrimSpace(line[i:]), false
		}
		if strings.Contains(line, "panic:") {
			return strings.TrimSpace(line), false
		}
	}
	return "failed", false
}
