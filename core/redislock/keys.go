package redislock

import (
	"crypto/sha256"
	"encoding/base64"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Keys. Except for the lock's own key, their braces make Cluster keep them in the lock's slot.

func (s *Store) lockKey(name string) string { return s.prefix + name }

func (s *Store) sideKey(name, kind string) string {
	return "{" + s.prefix + name + "}:v1:" + kind
}

func (s *Store) doneKey(c driver.Claim) string { return s.sideKey(c.Name, "done:"+c.Scope) }

// lineKeys are the keys of a name's queue and of its beats.
func (s *Store) lineKeys(name string) (line, beats string) {
	const suffix = ":beats"
	beats = s.sideKey(name, "line"+suffix)
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
