package natslock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The keys of a name. Dots separate the parts, and no part has any.

func lockKey(name string) string { return encode(name) + ".lock" }

// seats is how many places a queue has room for. One reply of the server has at most 1024 keys.
const seats = 512

func seatKey(name string, seat int) string { return encode(name) + ".line." + strconv.Itoa(seat) }

func lineKeys(name string) string { return encode(name) + ".line.*" }

func doneKey(name, scope string) string { return encode(name) + ".done." + encode(scope) }

// encode writes s in the characters that a key may have. Two strings never become the same key. Letters, digits,
// "_", "-" and "/" stay; every other byte is "=" and two digits; "" is "=".
func encode(s string) string {
	if s == "" {
		return "="
	}
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '/':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

// decode is the opposite of encode. ok is false for what encode never writes.
func decode(key string) (s string, ok bool) {
	var b strings.Builder
	for rest := strings.TrimSuffix(key, "="); rest != ""; {
		plain, escaped, more := strings.Cut(rest, "=")
		b.WriteString(plain)
		if !more {
			break
		}
		c, err := hex.DecodeString(escaped[:min(2, len(escaped))])
		if err != nil || len(c) != 1 {
			return "", false
		}
		b.Write(c)
		rest = escaped[2:]
	}
	return b.String(), encode(b.String()) == key
}

// digest stands for a token or a place, which are secrets, where others can read it.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:idWidth/2])
}

const idWidth = 2 * 16 // characters of a digest

// record is the value of a lock with one owner, of a place in its queue, or of a marker:
//
//	v1 <digest of the token or place> <TTL in ms> <order> <since> <label>
//
// The order is the revision that made it, and since is when, in ms of the server's clock. The revision that
// makes it does not know them: they are 0 there, and those of the entry itself. The label may have spaces.
// Anything else is foreign.
type record struct {
	id    string
	ttl   time.Duration
	order uint64
	since int64
	label string
}

func (r record) String() string {
	return fmt.Sprintf("v1 %s %d %d %d %s", r.id, r.ttl.Milliseconds(), r.order, r.since, r.label)
}

// parse reads the value of an entry. It is zero if that is foreign.
func parse(e *entry) (r record) {
	parts := strings.SplitN(e.value, " ", 6)
	if len(parts) != 6 || parts[0] != "v1" || len(parts[1]) != idWidth {
		return r
	}
	ms, errTTL := strconv.ParseInt(parts[2], 10, 64)
	order, errOrder := strconv.ParseUint(parts[3], 10, 64)
	since, errSince := strconv.ParseInt(parts[4], 10, 64)
	if errTTL != nil || errOrder != nil || errSince != nil {
		return r
	}
	r = record{parts[1], time.Duration(ms) * time.Millisecond, order, since, parts[5]}
	if order == 0 {
		r.order, r.since = e.revision, e.time.UnixMilli()
	}
	return r
}

// seconds is d as a TTL of NATS, in whole seconds, rounded up.
func seconds(d time.Duration) time.Duration {
	return max(minTTL, (d + time.Second - 1).Truncate(time.Second))
}
