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

// digest stands for a token or a place, which are secrets, where others can read it.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:16])
}

// A znode's data is empty while it waits, and then its owner's record:
//
//	v1 <digest of the token> <TTL in ms> <label>
//
// The label may have spaces. Anything else is foreign.

func record(c driver.Claim) []byte {
	return fmt.Appendf(nil, "v1 %s %d %s", digest(c.Token), c.TTL.Milliseconds(), c.Label)
}

// owner reads a record. All is zero if it is none.
func owner(data []byte) (token string, held driver.Held) {
	parts := strings.SplitN(string(data), " ", 4)
	if len(parts) != 4 || parts[0] != "v1" {
		return "", held
	}
	ms, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return "", held
	}
	return parts[1], driver.Held{Label: parts[3], Remaining: time.Duration(ms) * time.Millisecond}
}
