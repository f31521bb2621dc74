package zklock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// digest stands for a token or a hand-off, which are secrets, where others can read it.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:16])
}

// A znode's data is its ticket while it waits, and then its owner's record:
//
//	w1 <label>
//	v1 <digest of the token> <TTL in ms> <label>
//	l1 <digest of the token> <time in ms> <label>    left for a hand-off
//
// The label may have spaces. Tickets are only for people to read. Anything else is foreign.

func ticket(c driver.Claim) string { return "w1 " + c.Label }

// waiting is the label on a ticket.
func waiting(data []byte) string {
	label, ok := strings.CutPrefix(string(data), "w1 ")
	if !ok {
		return ""
	}
	return label
}

func record(c driver.Claim) string {
	return fmt.Sprintf("v1 %s %d %s", digest(c.Token), c.TTL.Milliseconds(), c.Label)
}

// leftRecord is what the owner leaves for a hand-off. Its digest is another one than that of the owner.
func leftRecord(c driver.Claim) string {
	return fmt.Sprintf("l1 %s %d %s", digest("left "+c.Token), c.Keep.Milliseconds(), c.Label)
}

// owner reads the record of a znode: that of an owner, or of what is left for a hand-off. All is zero if it is none.
func owner(znode string, data []byte) (id string, held driver.Held) {
	form := "v1"
	if isLeft(znode) {
		form = "l1"
	}
	parts := strings.SplitN(string(data), " ", 4)
	if len(parts) != 4 || parts[0] != form {
		return "", held
	}
	ms, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return "", held
	}
	return parts[1], driver.Held{Label: parts[3], Remaining: time.Duration(ms) * time.Millisecond}
}
