package redislock

import (
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/core/driver"
)

// notes are the many short strings of one command, in one piece of memory: a renewal has three
// for each lease.
type notes struct{ text strings.Builder }

// maxDigits is the length of the largest fence.
const maxDigits = 20

// grow makes room for a renewal of claims.
func (n *notes) grow(prefix string, claims []driver.Claim) {
	size := 0
	for i := range claims {
		size += len(prefix) + len(claims[i].Name) + len(claims[i].Token) + len(magic) + len(magic) + maxDigits
	}
	n.text.Grow(size)
}

// note returns a and b as one string.
func (n *notes) note(a, b string) string {
	from := n.text.Len()
	n.text.WriteString(a)
	n.text.WriteString(b)
	return n.text.String()[from:]
}

// suffix is what a renewal adds to a lock's value.
func (n *notes) suffix(fence uint64) string {
	if fence == 0 {
		return ""
	}
	from := n.text.Len()
	n.text.WriteString(magic)
	var digits [maxDigits]byte
	n.text.Write(strconv.AppendUint(digits[:0], fence, 10))
	return n.text.String()[from:]
}
