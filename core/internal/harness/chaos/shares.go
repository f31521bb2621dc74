//go:build linux

package chaos

import (
	"slices"
	"strconv"
	"strings"
)

// besides is the name of which a key says something besides who has it.
func besides(key, what string) string {
	name, ok := strings.CutSuffix(key, "}:v1:"+what)
	if !ok {
		return ""
	}
	return strings.TrimPrefix(name, "{"+prefix)
}

// share notes until when one of many holds a name. Each has an end of its own.
func (l *Ledger) share(c Command) {
	name, member := besides(c.Args[1], "holders"), c.Args[len(c.Args)-1]
	if name == "" {
		return
	}
	r := l.shares[name+member]
	if c.Args[0] == "zrem" {
		if r != nil {
			r.To, r.End = c.At, endFreed
			delete(l.shares, name+member)
		}
		return
	}
	ms, err := strconv.ParseFloat(c.Args[2], 64)
	if err != nil {
		return
	}
	if r == nil {
		r = &Grant{Name: name, Token: tokenOf(member), Worker: c.Client, From: c.At, To: never}
		l.shares[name+member] = r
		l.Shares = append(l.Shares, r)
	}
	r.prolong(c.At, fromWall(ms/1000))
}

// part notes the release of the last of many, which deletes them all.
func (l *Ledger) part(c Command, key string) {
	name := besides(key, "holders")
	for share, r := range l.shares {
		if r.Name == name && carries(c, r.Token) {
			r.To, r.End = c.At, endFreed
			delete(l.shares, share)
		}
	}
}

// unshared looks for those who still have a part in a name that somebody takes for himself.
func (l *Ledger) unshared(c Command, name string) {
	for key, r := range l.shares {
		if r.Name != name {
			continue
		}
		lost := slices.ContainsFunc(l.Seizures, func(s Seizure) bool { return s.At >= r.From && (s.Name == "" || s.Name == name) })
		restart := slices.ContainsFunc(l.Restarts, func(at int64) bool { return at >= r.From })
		if !c.operators() && !lost && !restart && r.Expiry-c.At > rounding {
			l.breach(c, "takes %q, of which %s has a part for %.0f ms more", name, r.Worker, seconds(r.Expiry-c.At)*1000)
		}
		delete(l.shares, key)
	}
}
