package etcdlock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/oldadapter"
	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Store is a lock service on etcd. It implements driver.Driver; see [New].
type Store struct {
	*oldadapter.Driver
	inspect.Inspector
	inspect.MarkerInspector
}

// store is a Store on the old contract.
type store struct {
	client *clientv3.Client
	prefix string
	share  share // transactions that go together

	keepAlives keepAlives // over one stream
	watches    watches    // of places, from one call to the next
	doubts     doubts     // leases that keep something or nothing
}

var (
	_ driver.Driver          = (*store)(nil)
	_ driver.Queuer          = (*store)(nil)
	_ driver.Validator       = (*store)(nil)
	_ driver.Locator         = (*store)(nil)
	_ driver.IdleCloser      = (*store)(nil)
	_ driver.Inspector       = (*store)(nil)
	_ driver.MarkerInspector = (*store)(nil)
)

// Option configures a [Store].
type Option interface{ apply(*store) }

type optionFunc func(*store)

func (f optionFunc) apply(s *store) { f(s) }

// WithPrefix sets the beginning of all keys. The default is "holdfast/". It must not contain control
// characters.
func WithPrefix(prefix string) Option {
	return optionFunc(func(s *store) { s.prefix = prefix })
}

// New returns a Store that sends its requests through client. The caller still configures and closes
// client. New does no I/O. core.New reports what cannot work: a nil client, or an impossible prefix.
func New(client *clientv3.Client, opts ...Option) *Store {
	s := newStore(client, opts...)
	return &Store{oldadapter.New(s), s, s}
}

func newStore(client *clientv3.Client, opts ...Option) *store {
	s := &store{client: client, prefix: "holdfast/"}
	for _, o := range opts {
		o.apply(s)
	}
	return s
}

// minTTL is the shortest lease that etcd grants, with its default election time-out.
const minTTL = 2 * time.Second

// Capabilities implements driver.Driver.
func (s *store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Backend: "etcd", Punctual: true, Fence: true, Shared: true, Limit: true, Dedup: true, Keep: true, Detach: true,
		MinTTL: minTTL,
	}
}

// Validate implements driver.Validator.
func (s *store) Validate() error {
	if s.client == nil {
		return errors.New("etcdlock: nil client")
	}
	if strings.ContainsFunc(s.prefix, unicode.IsControl) {
		return fmt.Errorf("etcdlock: WithPrefix(%q): control characters are not allowed", s.prefix)
	}
	return nil
}

// Keys. No name and no prefix has a zero byte, so names do not meet.

func (s *store) lockKey(name string) string { return s.prefix + name }

func (s *store) heldPrefix(name string) string { return s.prefix + name + "\x00held/" }

func (s *store) heldKey(c driver.Claim) string { return s.heldPrefix(c.Name) + digest(c.Token) }

func (s *store) linePrefix(name string) string { return s.prefix + name + "\x00line/" }

func (s *store) placeKey(name, place string) string { return s.linePrefix(name) + digest(place) }

func (s *store) doneKey(c driver.Claim) string { return s.prefix + c.Name + "\x00done/" + c.Scope }

// digest stands for a token or a place, which are secrets, where others can read it.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:16])
}

// seconds is d in etcd's unit, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
