package redislock

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/redis/go-redis/v9"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
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

// Validate implements driver.Validator. It checks the client and the options.
func (b *base) Validate() error {
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
	var key strings.Builder
	key.Grow(len(b.prefix) + len(name) + len(kind) + 6)
	key.WriteByte('{')
	key.WriteString(b.prefix)
	key.WriteString(name)
	key.WriteString("}:v1:")
	key.WriteString(kind)
	return key.String()
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
