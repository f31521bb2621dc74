package redislock

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// merger makes one command from many of the same kind.
type merger struct {
	script *script
	alone  func(*Store, driver.Claim) command
	grants bool
	kinds  []string // of the keys of a name, besides the lock
}

// The commands that most callers send. In one call of a script, they cost the server less than half
// of what they cost one by one.
var (
	acquires = &merger{newScript("acquire_many.lua"), (*Store).attempt, true, []string{"line"}}
	releases = &merger{newScript("release_many.lua"), (*Store).release, false, []string{"line", "line:beats"}}
)

// plain is what a command that can be merged says of its claim: a claim has a lot more.
type plain struct {
	name, token, label string
	ttl                time.Duration
}

// merged is a command that can be merged with others of its kind. Whoever sends it spells it out.
func (s *Store) merged(m *merger, c driver.Claim) command {
	return command{merger: m, group: s.layout.group(c.Name), plain: plain{c.Name, c.Token, c.Label, c.TTL}}
}

// spelled is c with its parts.
func (s *Store) spelled(c command) command {
	if p := c.plain; c.merger != nil {
		return c.merger.alone(s, driver.Claim{Name: p.name, Token: p.token, Label: p.label, TTL: p.ttl})
	}
	return c
}

// of returns one command for many commands of this kind.
func (m *merger) of(s *Store, many []*part) command {
	c := command{script: m.script, merger: m, lasting: m.grants, keys: 1 + (1+len(m.kinds))*len(many)}
	size := 0
	for _, p := range many {
		size += 3*(len("{}:v1:line:beats")+len(s.prefix)+len(p.Command.plain.name)) + len(p.Command.plain.token) + len(magic) + len(p.Command.plain.label)
	}
	var n notes
	n.text.Grow(size)
	c.parts = append(make([]string, 0, c.keys+2*len(many)), s.layout.fence(many[0].Command.plain.name)) // the same for all of a group
	for _, p := range many {
		c.parts = append(c.parts, n.of(s.prefix, p.Command.plain.name))
		for _, kind := range m.kinds {
			c.parts = append(c.parts, n.of("{", s.prefix, p.Command.plain.name, "}:v1:", kind))
		}
	}
	for _, p := range many {
		c.parts = append(c.parts, n.of(p.Command.plain.token, magic, p.Command.plain.label))
	}
	if !m.grants {
		c.parts = append(c.parts, s.subscribers.channels(many[0].Command.plain.name))
		return c
	}
	ttl := many[0].Command.plain.ttl
	c.parts = append(c.parts, millis(ttl))
	if slices.ContainsFunc(many, func(p *part) bool { return p.Command.plain.ttl != ttl }) {
		for _, p := range many[1:] {
			c.parts = append(c.parts, millis(p.Command.plain.ttl))
		}
	}
	return c
}

// answered reads the i-th of the answers to a merged command. A text is the error that the server would have answered to
// that one command alone.
func (c *command) answered(reply any, i, n int, err error) (any, error) {
	if reply == nil {
		return nil, err
	}
	if first, ok := reply.(int64); ok && first > 0 { // one for all
		if c.merger.grants {
			first += int64(i)
		}
		return first, err
	}
	answers, _ := reply.([]any)
	if len(answers) != n {
		return nil, errUnknownReply
	}
	if text, ok := answers[i].(string); ok {
		return nil, c.says(text)
	}
	return answers[i], err
}
