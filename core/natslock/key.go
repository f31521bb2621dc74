package natslock

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The keys of a name. Dots separate the parts, and no part has any.

func lockKey(name string) string { return encode(name) + ".lock" }

// slots is how many entries a queue has room for. One reply of the server has at most 1024 keys. A key that was left is
// used again: it is remembered for a while, so a key for each entry would soon be more than that.
const slots = 512

func slotKey(name string, slot int) string { return encode(name) + ".queue." + strconv.Itoa(slot) }

func queueKeys(name string) string { return encode(name) + ".queue.*" }

func doneKey(name, scope string) string { return encode(name) + ".done." + encode(scope) }

// encode writes s in the characters that a key may have. Two strings never become the same key. Letters, digits,
// "_" and "-" stay; every other byte is "=" and two digits; "" is "=".
func encode(s string) string {
	if s == "" {
		return "="
	}
	return escapes.Replace(url.QueryEscape(s))
}

var escapes = strings.NewReplacer("%", "=", "+", "=20", ".", "=2E", "~", "=7E")

// decode is the opposite of encode. ok is false for what encode never writes.
func decode(key string) (s string, ok bool) {
	s, err := url.QueryUnescape(strings.ReplaceAll(strings.TrimSuffix(key, "="), "=", "%"))
	return s, err == nil && encode(s) == key
}

// digest stands for a token or a hand-off, which are secrets, where others can read it.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:idWidth/2])
}

const idWidth = 2 * 16 // characters of a digest

// seconds is d as a TTL of NATS, in whole seconds, rounded up.
func seconds(d time.Duration) time.Duration {
	return max(minTTL, (d + time.Second - 1).Truncate(time.Second))
}
