package redislock

import (
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/core/driver"
)

// notes are the short strings of one command, in one piece of memory. A renewal has two of them for
// each lease.
type notes struct{ text strings.Builder }

// maxDigits is the length of the largest fence.
const maxDigits = 20

// grow makes room for a renewal of claims.
func (n *notes) grow(prefix string, claims []driver.Claim) {
	size := 0
	for i := range claims {
		c := &claims[i]
		size += len(prefix) + len(c.Name) + len(c.Token) + len(magic) + len(c.Label) + len(magic) + maxDigits
	}
	n.text.Grow(size)
}

// key is the lock's key.
func (n *notes) key(prefix, name string) string {
	from := n.text.Len()
	n.text.WriteString(prefix)
	n.text.WriteString(name)
	return n.text.String()[from:]
}

// value is the lock's value: with the fence once that is known.
func (n *notes) value(c *driver.Claim) string {
	from := n.text.Len()
	n.text.WriteString(c.Token)
	n.text.WriteString(magic)
	n.text.WriteString(c.Label)
	if c.Fence > 0 {
		n.text.WriteString(magic)
		var digits [maxDigits]byte
		n.text.Write(strconv.AppendUint(digits[:0], c.Fence, 10))
	}
	return n.text.String()[from:]
}
