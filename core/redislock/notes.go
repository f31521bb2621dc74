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

// of is what some texts make together.
func (n *notes) of(texts ...string) string {
	from := n.text.Len()
	for _, text := range texts {
		n.text.WriteString(text)
	}
	return n.text.String()[from:]
}
