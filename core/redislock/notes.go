package redislock

import (
	"strings"

	"github.com/holdfast-go/holdfast/core/driver"
)

// notes are the short strings of one command, in one piece of memory. A renewal has two of them for
// each lease.
type notes struct{ text strings.Builder }

// grow makes room for a renewal of claims.
func (n *notes) grow(prefix string, claims []driver.Claim) {
	size := 0
	for i := range claims {
		c := &claims[i]
		size += len(prefix) + len(c.Name) + len(c.Token) + len(magic)
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

// owner is how the values of one tenure begin.
func (n *notes) owner(c *driver.Claim) string {
	from := n.text.Len()
	n.text.WriteString(c.Token)
	n.text.WriteString(magic)
	return n.text.String()[from:]
}
