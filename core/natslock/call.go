package natslock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core/driver"
)

var errCut = errors.New("natslock: the connection broke")

// notConnected says which servers are tried, and what the last one has said: for instance, that the password is wrong.
func (s *Store) notConnected() error {
	err := fmt.Errorf("natslock: not connected to %s", s.servers())
	if last := s.conn.LastError(); last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return driver.NotSent(driver.Unavailable(driver.Because(err, adviceNotConnected)))
}

// servers are those that the connection knows, without passwords.
func (s *Store) servers() string {
	var hosts []string
	for _, server := range s.conn.Servers() {
		if u, err := url.Parse(server); err == nil {
			hosts = append(hosts, u.Host)
		}
	}
	return cmp.Or(strings.Join(hosts, ", "), "any server")
}

// request sends one request and awaits its answer.
func (s *Store) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	answer, err := s.conn.RequestMsgWithContext(ctx, m)
	return answer, s.because(ctx, m.Subject, err)
}

// because says why a request was not answered.
func (s *Store) because(ctx context.Context, subject string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errCut):
		return ended(ctx)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		s.settled.Store(false) // the next call finds out whether the bucket is gone
		return driver.Unavailable(driver.Because(err, adviceNobody))
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrTimeout):
		return driver.Unavailable(err)
	}
	// A server drops what is not allowed, and tells only the connection, not the request.
	if last := s.conn.LastError(); errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(last.Error(), `"`+subject+`"`) {
		return driver.Refused(driver.Because(last, adviceNotAllowed))
	}
	return err
}

// refusal is the error of an answer of the server.
func refusal(err *jetstream.APIError) error {
	if advice := advised[err.ErrorCode]; advice != "" {
		return driver.Refused(driver.Because(err, advice))
	}
	if err.ErrorCode == codeNotStored {
		return driver.Unavailable(driver.Because(err, adviceFull))
	}
	if err.Code == http.StatusServiceUnavailable { // no leader, no room
		return driver.Unavailable(err)
	}
	return err
}

var advised = map[jetstream.ErrorCode]string{
	jetstream.JSErrCodeStreamNotFound:                adviceNoBucket,
	jetstream.JSErrCodeJetStreamNotEnabled:           adviceNoJetStream,
	jetstream.JSErrCodeJetStreamNotEnabledForAccount: adviceNoJetStream,
	codeTTLDisabled: adviceNoTTL,
}

// What older versions of the client have no names for.
const (
	codeTTLDisabled jetstream.ErrorCode = 10166 // a message with a TTL, in a stream that allows none
	codeInFlight    jetstream.ErrorCode = 10164 // another write to the key is under way, in a cluster
	codeNotStored   jetstream.ErrorCode = 10077 // the stream is at its limit, or its disk is full

	headerOf = "Nats-Expected-Last-Subject-Sequence-Subject"
)

// errMoved says that a key is not at the revision that a write expects.
var errMoved = errors.New("natslock: the key has changed")

// write is one message to the stream. It changes nothing unless the key is at the given revision: 0 if it was
// never there, or is forgotten.
type write struct {
	key, value string
	ttl        time.Duration
	after      uint64
	of         string // the key whose revision counts, "" for key
	delete     bool
}

// put executes w, and returns the new revision of the key.
func (s *Store) put(ctx context.Context, w write) (uint64, error) {
	m := nats.NewMsg(s.writeSubject(w.key))
	m.Data = []byte(w.value)
	m.Header.Set(jetstream.MsgTTLHeader, w.ttl.String())
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(w.after, 10))
	if w.of != "" {
		m.Header.Set(headerOf, s.subject(w.of))
	}
	if w.delete {
		m.Header.Set("KV-Operation", "PURGE")
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	}
	answer, err := s.request(ctx, m)
	if err != nil {
		return 0, err
	}
	var ack struct {
		Error    *jetstream.APIError `json:"error"`
		Sequence uint64              `json:"seq"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, fmt.Errorf("natslock: an answer that makes no sense: %w", err)
	}
	switch {
	case ack.Error == nil:
		return ack.Sequence, nil
	case ack.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence,
		ack.Error.ErrorCode == codeInFlight:
		return 0, errMoved
	}
	return 0, refusal(ack.Error)
}

// writeSubject is where a message to a key is sent: through the API of its domain, if that is another one.
func (s *Store) writeSubject(key string) string {
	if api := s.api(); api != jetstream.DefaultAPIPrefix {
		return api + s.subject(key)
	}
	return s.subject(key)
}

// tombstone is how long a key that was deleted is remembered, so that a late claim meets another revision.
const tombstone = time.Minute

// remove deletes a key that is at this revision.
func (s *Store) remove(ctx context.Context, e *entry) error {
	_, err := s.put(ctx, write{key: e.key, after: e.revision, ttl: tombstone, delete: true})
	return err
}

// errStale says that what a call has read must be read again, at once.
var errStale = errors.New("natslock: read before a write of its own")

// run makes a call, once the bucket has been found to be one for locks. It tries until the keys are as it has read them. The
// context that it gives ends with the connection, too: NATS's client would wait for an answer that cannot come any more.
func (s *Store) run(ctx context.Context, try func(context.Context) error) error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return err
	}
	changed := s.conn.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	defer s.conn.RemoveStatusListener(changed)
	if !s.conn.IsConnected() { // a request would be kept, and sent when nobody waits for it any more
		return s.notConnected()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-changed:
			cancel(errCut)
		case <-ctx.Done():
		}
	})
	defer watching.Wait()
	defer cancel(nil)
	if err := s.settle(ctx); err != nil {
		return err
	}
	return repeat(ctx, func() error { return try(ctx) })
}

func repeat(ctx context.Context, try func() error) error {
	for tries := 0; ; tries++ {
		switch err := try(); {
		case errors.Is(err, errStale):
		case !errors.Is(err, errMoved):
			return err
		default:
			if err := pause(ctx, tries); err != nil {
				return err
			}
		}
	}
}

// pause waits a little longer from time to time, for a key that others are changing, or a replica that lags. Those who
// have met at a key do not come back together.
func pause(ctx context.Context, tries int) error {
	most := min(2*time.Millisecond<<min(tries, 6), 50*time.Millisecond)
	timer := time.NewTimer(rand.N(most)) //nolint:gosec // G404: no secret
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// ended says why the context of a call has ended.
func ended(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errCut) {
		return driver.Unavailable(errCut)
	}
	return ctx.Err()
}
