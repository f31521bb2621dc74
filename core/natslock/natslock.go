package natslock

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/oldadapter"
	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Store is a lock service on NATS. It implements driver.Driver; see [New].
type Store struct {
	*oldadapter.Driver
	inspect.Inspector
	inspect.MarkerInspector

	old *store
}

// store is a Store on the old contract.
type store struct {
	js     jetstream.JetStream
	conn   *nats.Conn
	bucket string

	mu      sync.Mutex // protects what follows
	settled bool       // the bucket has been looked at, and can be used
	warned  bool       // that it is weak, if it is
	copies  int        // how many replicas it had then
}

var (
	_ driver.Driver          = (*store)(nil)
	_ driver.Queuer          = (*store)(nil)
	_ driver.Validator       = (*store)(nil)
	_ driver.Locator         = (*store)(nil)
	_ driver.Inspector       = (*store)(nil)
	_ driver.MarkerInspector = (*store)(nil)
)

// New returns a Store that keeps its locks in a bucket of JetStream's key-value store, made with the settings
// of [Bucket], and used for nothing else. The caller still configures and closes the connection of js. New does
// no I/O. core.New reports what cannot work: no js, or an impossible name of a bucket.
func New(js jetstream.JetStream, bucket string) *Store {
	s := newStore(js, bucket)
	return &Store{oldadapter.New(s), s, s, s}
}

func newStore(js jetstream.JetStream, bucket string) *store {
	s := &store{js: js, bucket: bucket}
	if js != nil {
		s.conn = js.Conn()
	}
	return s
}

// minTTL is the shortest TTL of a message.
const minTTL = time.Second

// Capabilities implements driver.Driver. Calls are not punctual: nats.go writes to a socket under a mutex, for as long as
// nats.FlusherTimeout lets it, a minute by default, and a call waits for that mutex.
func (s *store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Backend: "NATS", Fence: true, Shared: true, Limit: true, Dedup: true, Keep: true, Detach: true, MinTTL: minTTL,
	}
}

var validBucket = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// Validate implements driver.Validator.
func (s *store) Validate() error {
	if s.js == nil || s.conn == nil {
		return errors.New("natslock: nil JetStream")
	}
	if !validBucket.MatchString(s.bucket) {
		return fmt.Errorf("natslock: bucket %q: only A-Z, a-z, 0-9, _ and - are allowed", s.bucket)
	}
	return nil
}

// Location implements driver.Locator.
func (s *store) Location() string {
	return cmp.Or(s.conn.ConnectedUrlRedacted(), s.servers()) + ", bucket " + s.bucket
}

// stream is where the bucket keeps its keys.
func (s *store) stream() string { return "KV_" + s.bucket }

// api is the beginning of JetStream's own subjects: another one for a domain.
func (s *store) api() string {
	options := s.js.Options()
	prefix := options.APIPrefix
	if options.Domain != "" {
		prefix = "$JS." + options.Domain + ".API"
	}
	if prefix == "" {
		prefix = jetstream.DefaultAPIPrefix
	}
	return strings.TrimSuffix(prefix, ".") + "."
}

// subject is where a key is in the stream.
func (s *store) subject(key string) string { return "$KV." + s.bucket + "." + key }

// wakeSubject is where those who wait for a name hear what has changed. It is no part of the stream.
func (s *store) wakeSubject(name, what string) string {
	return "holdfast." + s.bucket + "." + encode(name) + "." + what
}
