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

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// Store is a lock service on etcd. It implements driver.Driver; see [New].
type Store struct {
	client *clientv3.Client
	prefix string

	share      sharing    // transactions that go together
	keepAlives keepAlives // over one stream
	doubts     doubts     // leases that keep something or nothing
}

var (
	_ driver.Driver           = (*Store)(nil)
	_ driver.Closer           = (*Store)(nil)
	_ inspect.Inspector       = (*Store)(nil)
	_ inspect.MarkerInspector = (*Store)(nil)
)

// Option configures a [Store].
type Option interface{ apply(*Store) }

type optionFunc func(*Store)

func (f optionFunc) apply(s *Store) { f(s) }

// WithPrefix sets the beginning of all keys. The default is "holdfast/". It must not contain control
// characters.
func WithPrefix(prefix string) Option {
	return optionFunc(func(s *Store) { s.prefix = prefix })
}

// New returns a Store that sends its requests through client. The caller still configures and closes
// client. New does no I/O. core.New reports what cannot work: a nil client, or an impossible prefix.
func New(client *clientv3.Client, opts ...Option) *Store {
	s := &Store{client: client, prefix: "holdfast/"}
	s.share.Alone, s.share.Send, s.share.Apart = s.alone, s.together, apart
	for _, o := range opts {
		o.apply(s)
	}
	return s
}

// minTTL is the shortest lease that etcd grants, with its default election time-out.
const minTTL = 2 * time.Second

// Capabilities implements driver.Driver.
func (s *Store) Capabilities() driver.Capabilities {
	can := driver.Capabilities{
		Backend: "etcd", Punctual: true, Hears: true, Queue: true,
		Fence: true, Shared: true, Limit: true, Dedup: true, Keep: true, Detach: true, MinTTL: minTTL,
	}
	switch {
	case s.client == nil:
		can.Err = errors.New("etcdlock: nil client")
	case strings.ContainsFunc(s.prefix, unicode.IsControl):
		can.Err = fmt.Errorf("etcdlock: WithPrefix(%q): control characters are not allowed", s.prefix)
	default:
		can.Location = s.location()
	}
	return can
}

// Keys. No name and no prefix has a zero byte, so names do not meet.

func (s *Store) lockKey(name string) string { return s.prefix + name }

func (s *Store) heldPrefix(name string) string { return s.prefix + name + "\x00held/" }

// formPrefix is that of holders of a form, shared or limited.
func (s *Store) formPrefix(name, form string) string { return s.heldPrefix(name) + form + "/" }

// ownKey is the key of c as a holder.
func (s *Store) ownKey(c driver.Claim) string {
	if c.Exclusive() {
		return s.lockKey(c.Name)
	}
	return s.formPrefix(c.Name, formOf(c)) + digest(c.Token)
}

func (s *Store) queuePrefix(name string) string { return s.prefix + name + "\x00queue/" }

func (s *Store) entryKey(c driver.Claim) string { return s.queuePrefix(c.Name) + digest(c.Token) }

func (s *Store) doneKey(c driver.Claim) string { return s.prefix + c.Name + "\x00done/" + c.Scope }

// digest stands for a token, which is a secret, where others can read it.
func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:16])
}
