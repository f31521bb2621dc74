package redislock

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/core/driver"
)

// joins says whether a claim can own a name together with others. Such claims have scripts of their
// own.
func joins(c driver.Claim) bool { return !c.Exclusive() }

// holdersKeys are the keys of those who share a name, and of the notes on them.
func (s *Store) holdersKeys(name string) (holders, notes string) {
	const suffix = ":notes"
	notes = s.sideKey(name, "holders"+suffix)
	return notes[:len(notes)-len(suffix)], notes
}

// holder is the member that stands for c among the holders of its name.
func holder(c driver.Claim) string {
	if c.Shared() {
		return "+" + owner(c)
	}
	return "*" + owner(c) + decimal(int64(c.Limit))
}

// limitOf returns c's limit, or 0 for a reader.
func limitOf(c driver.Claim) string {
	if c.Shared() {
		return "0"
	}
	return decimal(int64(c.Limit))
}

// joined reads a fence and a limit.
func joined(reply any) (g driver.Grant, err error) {
	text, _ := reply.(string)
	fence, limit, ok := strings.Cut(text, " ")
	if !ok {
		return g, fmt.Errorf("redislock: unknown reply %T to an acquire", reply)
	}
	if g.Fence, err = strconv.ParseUint(fence, 10, 53); err == nil {
		g.Limit, err = strconv.Atoi(limit)
	}
	if err != nil || g.Limit < 0 {
		return driver.Grant{}, errNoGrant
	}
	return g, nil
}

// renewApart renews claims of all kinds, but not in Cluster. Those that can own a name together have a script of their
// own.
func (s *Store) renewApart(ctx context.Context, claims []driver.Claim) []error {
	var alone, many []driver.Claim
	for _, c := range claims {
		if !joins(c) {
			alone = append(alone, c)
			continue
		}
		many = append(many, c)
	}
	extended := s.runRenewals(ctx, many, s.extension)
	plain := s.Renew(ctx, alone)
	errs := make([]error, 0, len(claims))
	for _, c := range claims {
		if joins(c) {
			errs, extended = append(errs, extended[0]), extended[1:]
		} else {
			errs, plain = append(errs, plain[0]), plain[1:]
		}
	}
	return errs
}

func (s *Store) extension(claims []driver.Claim) command {
	var keys, args []string
	for _, c := range claims {
		holders, notes := s.holdersKeys(c.Name)
		keys = append(keys, s.lockKey(c.Name), holders, notes)
		args = append(args, holder(c), millis(c.TTL))
	}
	cmd := command{script: extendScript, lasting: prolongs(claims), keys: len(keys), parts: append(keys, args...)}
	if len(claims) == 1 {
		cmd.least = 2 // there may be no notes
	}
	return cmd
}

// part is Release for claims that can own a name together.
func (s *Store) part(c driver.Claim) command { return s.parting(c, "") }

// partQueued is part for one that may be in the queue, too.
func (s *Store) partQueued(c driver.Claim) command { return s.parting(c, s.subscribers.member(c)) }

func (s *Store) parting(c driver.Claim, member string) command {
	line, beats := s.lineKeys(c.Name)
	holders, notes := s.holdersKeys(c.Name)
	cmd := command{script: partScript, tells: true, keys: 6, parts: []string{s.lockKey(c.Name), holders, notes, line, beats, s.layout.fence(c.Name)}}
	switch {
	case c.Dedup > 0:
		cmd.keys++
		cmd.parts = append(cmd.parts, s.doneKey(c))
	case member == "":
		cmd.least = 2
	}
	cmd.parts = append(cmd.parts, holder(c), member, s.subscribers.channels(c.Name))
	if c.Dedup > 0 {
		cmd.parts = append(cmd.parts, c.Label, millis(c.Dedup))
	}
	return cmd
}
