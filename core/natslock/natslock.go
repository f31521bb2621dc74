package natslock

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// Store is a lock service on NATS. It implements driver.Driver; see [New].
type Store struct {
	js     jetstream.JetStream
	conn   *nats.Conn
	bucket string

	settled atomic.Bool  // the bucket has been checked, and can be used
	copies  atomic.Int64 // how many replicas it had then
	warning sync.Once    // that it is weak, if it is
}

var (
	_ driver.Driver           = (*Store)(nil)
	_ inspect.Inspector       = (*Store)(nil)
	_ inspect.MarkerInspector = (*Store)(nil)
)

// New returns a Store that keeps its locks in a bucket of JetStream's key-value store, made with the settings
// of [Bucket], and used for nothing else. The caller still configures and closes the connection of js. New does
// no I/O. core.New reports what cannot work: no js, or an impossible name of a bucket.
func New(js jetstream.JetStream, bucket string) *Store {
	s := &Store{js: js, bucket: bucket}
	if js != nil {
		s.conn = js.Conn()
	}
	return s
}

// minTTL is the shortest TTL of a message.
const minTTL = time.Second

// Capabilities implements driver.Driver. Calls are not punctual: nats.go writes to a socket under a mutex, for as long as
// nats.FlusherTimeout lets it, a minute by default, and a call waits for that mutex.
func (s *Store) Capabilities() driver.Capabilities {
	can := driver.Capabilities{
		Backend: "NATS", Err: s.validate(), Hears: true, Queue: true,
		Fence: true, Shared: true, Limit: true, Dedup: true, Keep: true, Detach: true, MinTTL: minTTL,
	}
	if can.Err == nil {
		can.Location = cmp.Or(s.conn.ConnectedUrlRedacted(), s.servers()) + ", bucket " + s.bucket
	}
	return can
}

var validBucket = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func (s *Store) validate() error {
	if s.js == nil || s.conn == nil {
		return errors.New("natslock: nil JetStream")
	}
	if !validBucket.MatchString(s.bucket) {
		return fmt.Errorf("natslock: bucket %q: only A-Z, a-z, 0-9, _ and - are allowed", s.bucket)
	}
	return nil
}

// stream is where the bucket keeps its keys.
func (s *Store) stream() string { return "KV_" + s.bucket }

// api is the beginning of JetStream's own subjects: another one for a domain.
func (s *Store) api() string {
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
func (s *Store) subject(key string) string { return "$KV." + s.bucket + "." + key }

// wakeSubject is where those who wait for a name hear what has changed. It is no part of the stream.
func (s *Store) wakeSubject(name, what string) string {
	return "holdfast." + s.bucket + "." + encode(name) + "." + what
}
