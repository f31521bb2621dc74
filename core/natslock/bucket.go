package natslock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Bucket returns the settings of a bucket for locks:
//
//	_, err := js.CreateKeyValue(ctx, natslock.Bucket("locks", 3))
//
// A bucket with fewer than three replicas loses its locks with one server. Package natslock says what else its
// servers need.
func Bucket(name string, replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: name, Description: "locks of Holdfast", Replicas: replicas,
		Storage: jetstream.FileStorage, History: 1, LimitMarkerTTL: tombstone,
	}
}

// What an operator can do about errors.
const (
	adviceNoBucket     = "the bucket does not exist: make it with the settings of natslock.Bucket"
	adviceNoJetStream  = "the server or the account has no JetStream: enable it"
	adviceNoTTL        = "the bucket allows no TTL for a key: make it with the settings of natslock.Bucket, on nats-server 2.11 or later"
	adviceNotConnected = "the connection to NATS is down: check its servers, its user or credentials, and its TLS, and whether a server is up"
	adviceNobody       = "nobody answers for the bucket: it was deleted, it has no leader now, or its stream does not allow direct access"
	adviceNotAllowed   = "the user lacks a permission: docs/backends/nats.md lists those that are needed"
	adviceHistory      = "the bucket keeps old values: set its history to 1"
	adviceAge          = "the bucket has a TTL of its own, which would end locks that are renewed: set it to 0"
	adviceDirect       = "the bucket does not allow direct access: set allow_direct on its stream"
	adviceMirror       = "the bucket is a mirror: use the bucket that it mirrors"
	adviceLimit        = "the bucket has a limit of its size, and would renew no lease once it is full: set max_bytes and max_msgs of its stream to -1"
	adviceDiscard      = "the bucket deletes its oldest keys when it is full, so a name would get a second holder: set discard of its stream to new"
	adviceFull         = "the bucket takes no writes: set max_bytes and max_msgs of its stream to -1, or make room on its servers' disks"
)

// ErrWeak says that a bucket can lose a lock that it has granted when one server fails.
var ErrWeak = errors.New("natslock: the bucket loses locks with one server")

// Check asks for the bucket's settings. It is for the start of a program, and for tests of a deployment: the
// Store itself checks them at its first use. The error says what to change. It matches [ErrWeak] if the bucket
// can be used, but has fewer than three replicas, or keeps its data in memory.
//
// A server does not tell its sync_interval. So Check cannot see whether the servers write to their disks
// before they answer.
func (s *Store) Check(ctx context.Context) error {
	if err := s.validate(); err != nil {
		return err
	}
	config, err := s.settings(ctx)
	if err != nil {
		return err
	}
	if weakness := weakness(config); weakness != "" {
		return fmt.Errorf("%w: %s", ErrWeak, weakness)
	}
	return nil
}

// settle checks the bucket once, and warns if it is weak.
func (s *Store) settle(ctx context.Context) error {
	if s.settled.Load() {
		return nil
	}
	config, err := s.settings(ctx)
	if err != nil {
		return err
	}
	if weakness := weakness(config); weakness != "" {
		s.warning.Do(func() {
			slog.Warn("holdfast: a lock that is granted may be granted again after the failure of one server",
				slog.String("backend", "NATS"), slog.String("bucket", s.bucket), slog.String("because", weakness))
		})
	}
	s.copies.Store(int64(config.Replicas))
	s.settled.Store(true)
	return nil
}

// clustered says whether the bucket has replicas, of which some may be late.
func (s *Store) clustered() bool { return s.copies.Load() > 1 }

// settings reads those of the bucket. The error says what cannot work.
func (s *Store) settings(ctx context.Context) (config jetstream.StreamConfig, err error) {
	info, err := s.info(ctx)
	if err != nil {
		return config, err
	}
	config = info.Config
	for _, wrong := range []struct {
		it     bool
		advice string
	}{
		{config.Mirror != nil, adviceMirror},
		{!config.AllowMsgTTL || config.SubjectDeleteMarkerTTL < minTTL, adviceNoTTL},
		{config.MaxMsgsPerSubject != 1, adviceHistory},
		{config.MaxAge != 0, adviceAge},
		{!config.AllowDirect, adviceDirect},
		{config.Discard != jetstream.DiscardNew, adviceDiscard},
		{config.MaxBytes > 0 || config.MaxMsgs > 0, adviceLimit},
	} {
		if wrong.it {
			return config, driver.Refused(driver.Because(fmt.Errorf("natslock: bucket %q: %s", s.bucket, wrong.advice), wrong.advice))
		}
	}
	return config, nil
}

// info asks for the stream of the bucket.
func (s *Store) info(ctx context.Context, opts ...jetstream.StreamInfoOpt) (info *jetstream.StreamInfo, err error) {
	stream, err := s.js.Stream(ctx, s.stream())
	switch {
	case err != nil:
	case len(opts) == 0:
		return stream.CachedInfo(), nil
	default:
		info, err = stream.Info(ctx, opts...)
	}
	if e, ok := errors.AsType[jetstream.JetStreamError](err); ok && e.APIError() != nil {
		return nil, refusal(e.APIError())
	}
	return info, s.because(ctx, s.api()+"STREAM.INFO."+s.stream(), err)
}

// weakness says why a bucket loses locks with one server.
func weakness(c jetstream.StreamConfig) string {
	switch {
	case c.Storage == jetstream.MemoryStorage:
		return "it keeps its data in memory: make it with file storage"
	case c.Replicas < 3:
		return "it has fewer than three replicas: make it with three, in a cluster"
	default:
		return ""
	}
}
