package memcachedlock

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core/driver"
)

// A value is token, magic, TTL in milliseconds, magic, label. No token has the magic byte.
const magic = "\x1f"

const (
	minTTL = 2 * time.Second
	maxTTL = 30*24*time.Hour - early
	// early is by how much memcached may drop an item before its time. Its clock is the whole
	// seconds since its start as they were at its last tick, less than a second ago; and a
	// tick that is a little late may skip a number.
	early = 2 * time.Second
	// over is an expiration that has passed: an item that has it is gone, and add succeeds. It is a date in 1970, since
	// twemproxy does not forward a number below zero.
	over = 30*24*60*60 + 1
)

func (s *Store) key(name string) string { return s.prefix + name }

// item is what stands for c while it is held.
func (s *Store) item(c driver.Claim) (*memcache.Item, error) {
	if c.TTL <= 0 || c.TTL > maxTTL {
		return nil, fmt.Errorf("%w: memcachedlock: a TTL of %s, and memcached takes up to %s", driver.ErrNotSent, c.TTL, maxTTL)
	}
	seconds := (c.TTL + early + time.Second - 1) / time.Second
	return &memcache.Item{
		Key:        s.key(c.Name),
		Value:      []byte(c.Token + magic + strconv.FormatInt(c.TTL.Milliseconds(), 10) + magic + c.Label),
		Expiration: int32(seconds), // of at most 30 days
	}, nil
}

// tombstone is what a release leaves, for no time.
func (s *Store) tombstone(c driver.Claim) *memcache.Item {
	return &memcache.Item{Key: s.key(c.Name), Expiration: over}
}

// owned is nil if c's token owns the item, and a *driver.Held if it does not. What is left of
// the owner's time the server does not say, so the bound is its TTL.
func owned(item *memcache.Item, c driver.Claim) error {
	parts := strings.SplitN(string(item.Value), magic, 3)
	if len(parts) != 3 {
		return &driver.Held{} // foreign
	}
	if parts[0] == c.Token {
		return nil
	}
	ttl, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || ttl <= 0 || ttl > maxTTL.Milliseconds() || len(parts[2]) > driver.MaxLabel {
		return &driver.Held{} // foreign after all
	}
	return &driver.Held{Label: parts[2], Remaining: time.Duration(ttl) * time.Millisecond}
}
