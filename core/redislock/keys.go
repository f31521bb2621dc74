package redislock

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"unicode"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// base is what Store and TxStore share: a client, and the names of the keys.
type base struct {
	rdb      redis.UniversalClient
	prefix   string
	replicas replicas
	slots    bool // WithSlots
	punctual bool
	inquiry  *inquiry
	leaving  *leaving
}

func newBase(rdb redis.UniversalClient, opts []Option) base {
	b := base{prefix: "holdfast:", inquiry: newInquiry(), leaving: new(leaving)}
	for _, o := range opts {
		o.apply(&b)
	}
	b.rdb, b.punctual = punctual(rdb)
	return b
}

// Option configures a [Store] or a [TxStore].
type Option interface{ apply(*base) }

type optionFunc func(*base)

func (f optionFunc) apply(b *base) { f(b) }

// WithPrefix sets the prefix of all keys. The default is "holdfast:". It may be empty, to share
// names with other lock libraries. Braces and control characters are not allowed: core.New reports
// them. The last one wins.
func WithPrefix(prefix string) Option {
	return optionFunc(func(b *base) { b.prefix = prefix })
}

// capabilities are those of the client and the options.
func (b *base) capabilities() driver.Capabilities {
	can := driver.Capabilities{Backend: "redis", Punctual: b.punctual, Err: b.validate()}
	if can.Err == nil {
		can.Location = b.location()
	}
	return can
}

// validate checks the client and the options.
func (b *base) validate() error {
	for _, r := range b.prefix {
		if r == '{' || r == '}' || unicode.IsControl(r) {
			return fmt.Errorf("redislock: WithPrefix(%q): braces and control characters are not allowed", b.prefix)
		}
	}
	if err := b.replicas.validate(); err != nil {
		return err
	}
	return fits(b.rdb)
}

// Keys. Except for the lock's own key, their braces make Cluster keep them in the lock's slot.

func (b *base) lockKey(name string) string { return b.prefix + name }

func (b *base) sideKey(name, kind string) string {
	return "{" + b.prefix + name + "}:v1:" + kind
}

func (b *base) doneKey(c driver.Claim) string { return b.sideKey(c.Name, "done:"+c.Scope) }

// lineKeys are the keys of a name's queue and of its beats.
func (b *base) lineKeys(name string) (line, beats string) {
	const suffix = ":beats"
	beats = b.sideKey(name, "line"+suffix)
	return beats[:len(beats)-len(suffix)], beats
}

// magic ends the token in a lock's value. No token contains it, so everything before it is the
// token.
const magic = "\x1f"

// owner is how a lock's value begins; owned is the whole value.

func owner(c driver.Claim) string { return c.Token + magic }
func owned(c driver.Claim) string { return c.Token + magic + c.Label }

// kept is the value of a name that a release has left taken, but for the time, which the script adds.
// It begins with '=' or '!', which no token does: by that, the scripts of acquires recognise it. Each
// such value has a handle of its own. So the text after '=' is as long as a token, and is made from the
// token that leaves it.
func kept(c driver.Claim) string {
	if c.Handoff != "" {
		return "!" + c.Handoff + magic + c.Label + magic
	}
	sum := sha256.Sum256([]byte(c.Token))
	left := "=" + base64.RawURLEncoding.EncodeToString(sum[:])
	return left[:min(len(left), len(c.Token))] + magic + c.Label + magic
}

// forHandoff is how the value of a name begins that is left for c's hand-off.
func forHandoff(c driver.Claim) string { return "!" + c.Handoff + magic }
