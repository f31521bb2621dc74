//go:build linux

package chaos

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// magic ends the token in a lock's value: see core/redislock.
const magic = "\x1f"

// rounding is by how much the server's expiry may be off what is computed here: it counts in
// milliseconds, from the beginning of a turn of its loop.
const rounding = int64(3 * time.Millisecond)

// Grant is the time for which the server kept a lock's key for one value.
type Grant struct {
	Name, Token string
	Worker      string // whose token it is; "" if an operator wrote it
	From, To    int64
	Expiry      int64 // when it would have ended by itself
	End         string
	Steps       []step // every grant and renewal, in order of time
	EndedBy     string // the connection that ended it
	Kept        bool   // nobody's: what WithMinHold or Detach leaves
}

type step struct{ at, expiry int64 }

// How a reign ends.
const (
	endFreed    = "freed"    // deleted by a script that carried the token
	endExpired  = "expired"  // nobody renewed it
	endOperator = "operator" // deleted, overwritten or made to expire from outside
	endBreach   = "breach"   // by a script that did not carry the token
	endRun      = "run"      // it stood at the end
)

// Seizure is an operator's command on a lock, or on all of them.
type Seizure struct {
	At   int64
	Name string // "" for all
}

// Ledger is what a server did, read from its commands.
type Ledger struct {
	Commands []Command
	Grants   []*Grant
	Shares   []*Grant // of those who hold a name together with others
	Seizures []Seizure
	Breaches []string // of the rule that only the owner renews and frees
	Restarts []int64  // the server forgot everything, and perhaps to say what it did last

	now     int64
	holders map[string]*Grant
	shares  map[string]*Grant // by name and member
	tokens  map[string]string // whose they are
}

const never = int64(1) << 62

// readLedger replays the commands on lock keys.
func readLedger(commands []Command) *Ledger {
	l := &Ledger{
		Commands: commands,
		shares:   make(map[string]*Grant),
		holders:  make(map[string]*Grant),
		tokens:   make(map[string]string),
	}
	for i, c := range commands {
		l.now = c.At
		l.expire()
		l.carried(c)
		l.seize(c)
		switch c.Args[0] {
		case "set":
			refused := i+1 < len(commands) && triedInVain(c, commands[i+1])
			l.set(c, refused)
		case "del", "unlink":
			for _, key := range c.Args[1:] {
				l.end(c, key)
				l.part(c, key)
			}
		case "pexpire", "expire":
			l.renew(c)
		case "persist":
			if r := l.holders[nameOf(c.Args[1])]; r != nil {
				r.prolong(c.At, never)
			}
		case "zadd", "zrem":
			l.share(c)
		case "flushall", restarted:
			if c.Args[0] == restarted {
				l.Restarts = append(l.Restarts, c.At)
			}
			for _, r := range l.holders {
				l.close(r, endOperator, c)
			}
		}
	}
	for _, r := range l.holders {
		l.close(r, endRun, Command{At: l.now})
	}
	return l
}

// restarted stands for a restart of the server, which kept nothing.
const restarted = "restarted"

// triedInVain says that a SET with NX was refused: the script then looks who has the name.
func triedInVain(set, next Command) bool {
	return strings.EqualFold(set.Args[len(set.Args)-1], "nx") && set.Script != 0 && next.Script == set.Script &&
		next.Args[0] == "get" && next.Args[1] == set.Args[1]
}

// seize notes what an operator does to a lock.
func (l *Ledger) seize(c Command) {
	if !c.operators() {
		return
	}
	switch c.Args[0] {
	case "set", "del", "pexpire", "persist":
		if name := nameOf(c.Args[1]); name != "" {
			l.Seizures = append(l.Seizures, Seizure{c.At, name})
		}
	case "flushall":
		l.Seizures = append(l.Seizures, Seizure{At: c.At})
	}
}

// nameOf is the name whose lock a key is, or "" if it is no lock.
func nameOf(key string) string {
	if name, ok := strings.CutPrefix(key, prefix); ok {
		return name
	}
	return ""
}

// tokenOf is the token in a lock's value, or in the note that a waiter leaves, where it comes last. A note without one has
// a number there.
func tokenOf(value string) string {
	token, _, ok := strings.Cut(value, magic)
	token = token[strings.LastIndexByte(token, ' ')+1:]
	if !ok || strings.Trim(token, "0123456789") == "" {
		return ""
	}
	return token
}

// nobodys says whether it is what stands in a token's place where a release has left a name
// taken: for nobody, or for a hand-off.
func nobodys(token string) bool { return token != "" && strings.ContainsAny(token[:1], "=!") }

// carries says whether the script that c is part of was given the token.
func carries(c Command, token string) bool {
	for _, arg := range c.Caller {
		if t := tokenOf(arg); t != "" && t == token {
			return true
		}
	}
	return false
}

func (l *Ledger) breach(c Command, format string, args ...any) {
	l.Breaches = append(l.Breaches, fmt.Sprintf("%.3f s, %s: ", seconds(c.At), c.Client)+fmt.Sprintf(format, args...))
}

// carried notes whose token it is: no token is ever used by two processes.
func (l *Ledger) carried(c Command) {
	tells := strings.HasPrefix(c.Args[0], "eval") || c.Args[0] == "set" && c.Script == 0
	if !tells || c.Client == operator {
		return
	}
	for _, arg := range c.Args[min(2, len(c.Args)):] {
		token := tokenOf(arg)
		if token == "" || nobodys(token) {
			continue
		}
		if whose, known := l.tokens[token]; known && whose != c.Client && c.Client != "" {
			l.breach(c, "carries a token of %s", whose)
		} else if c.Client != "" {
			l.tokens[token] = c.Client
		}
	}
}

func (l *Ledger) set(c Command, refused bool) {
	name := nameOf(c.Args[1])
	if name == "" || refused {
		return
	}
	ttl := ttlOf(c.Args)
	token := tokenOf(c.Args[2])
	whose := l.tokens[token]
	operators := c.operators() && whose == "" // an operator who frees a name grants it to a waiter: offers
	l.round(c, name)
	r := l.holders[name]
	if !operators && strings.ContainsAny(token[:min(1, len(token))], "+*") {
		l.joins(c, name, r)
		return
	}
	l.unshared(c, name)
	switch {
	case r == nil:
	case !operators && r.Token == token && token != "":
		r.prolong(c.At, c.Since+ttl)
		return
	case operators:
		l.close(r, endOperator, c)
	case carries(c, r.Token) && r.Token != "": // its owner leaves it taken for a hand-off, or for nobody; or the hand-off is taken over
		l.close(r, endFreed, c)
	default:
		l.breach(c, "overwrites %q, which %s has for %.0f ms more", name, cmp.Or(r.Worker, "a foreign client"), seconds(r.Expiry-c.At)*1000)
		l.close(r, endBreach, c)
	}
	n := &Grant{Name: name, Token: token, From: c.At, To: never, Kept: nobodys(token)}
	if !operators {
		n.Worker = cmp.Or(whose, c.Client) // not always the same: whoever frees a name may grant it to a waiter
	}
	n.prolong(c.At, c.Since+ttl)
	l.holders[name] = n
	l.Grants = append(l.Grants, n)
}

// joins is for a holder that others may stand beside: r, who has the name alone, must be gone, or
// become the first of them.
func (l *Ledger) joins(c Command, name string, r *Grant) {
	switch {
	case r == nil:
	case c.owns(r):
		l.close(r, endFreed, c)
	default:
		l.breach(c, "joins %q, which %s has for %.0f ms more", name, cmp.Or(r.Worker, "a foreign client"), seconds(r.Expiry-c.At)*1000)
		l.close(r, endBreach, c)
	}
}

// round ends what may have expired a moment before c, as c seems to think.
func (l *Ledger) round(c Command, name string) {
	if r := l.holders[name]; r != nil && r.Expiry-c.At <= rounding && !carries(c, r.Token) {
		l.close(r, endExpired, Command{At: c.At})
	}
}

func ttlOf(set []string) int64 {
	for i, word := range set[:len(set)-1] {
		if ms, err := strconv.ParseInt(set[i+1], 10, 64); err == nil && strings.EqualFold(word, "px") {
			return ms * int64(time.Millisecond)
		}
	}
	return never / 2
}

func (r *Grant) prolong(at, expiry int64) {
	r.Expiry = expiry
	r.Steps = append(r.Steps, step{at, expiry})
}

func (l *Ledger) renew(c Command) {
	r := l.holders[nameOf(c.Args[1])]
	unit := time.Millisecond
	if c.Args[0] == "expire" {
		unit = time.Second
	}
	n, err := strconv.ParseInt(c.Args[2], 10, 64)
	if r == nil || err != nil {
		return
	}
	switch {
	case c.operators():
		r.Expiry = c.At + n*int64(unit)
		r.End = endOperator // if it now expires, that was no choice of the owner
	case c.owns(r):
		r.prolong(c.At, c.Since+n*int64(unit))
		r.End = ""
	default:
		l.breach(c, "renews %q, which %s has", r.Name, cmp.Or(r.Worker, "a foreign client"))
		r.Expiry = c.At + n*int64(unit)
	}
}

func (l *Ledger) end(c Command, key string) {
	r := l.holders[nameOf(key)]
	switch {
	case r == nil:
	case c.operators():
		l.close(r, endOperator, c)
	case c.owns(r):
		l.close(r, endFreed, c)
	default:
		l.breach(c, "deletes %q, which %s has for %.0f ms more", r.Name, cmp.Or(r.Worker, "a foreign client"), seconds(r.Expiry-c.At)*1000)
		l.close(r, endBreach, c)
	}
}

// expire ends what has expired by now. What is about to, within the rounding, may have: it
// stays until something else tells.
func (l *Ledger) expire() {
	for _, r := range l.holders {
		if l.now >= r.Expiry {
			how := endExpired
			if r.End == endOperator {
				how = endOperator
			}
			l.close(r, how, Command{At: r.Expiry})
		}
	}
}

func (l *Ledger) close(r *Grant, how string, c Command) {
	r.To, r.End, r.EndedBy = c.At, how, c.Client
	if l.holders[r.Name] == r {
		delete(l.holders, r.Name)
	}
}
