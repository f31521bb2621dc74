package natslock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core/driver"
)

// nothingThere is what a read is told that finds none of its keys.
const nothingThere = "No Results"

// read returns the last message of every key, all of one moment. A key may end in a wildcard. Any replica may
// answer. The answer has a message for each key, and one that ends it. Before nats-server 2.12, it may leave out one that is
// written meanwhile.
func (s *Store) read(ctx context.Context, keys ...string) (found []*entry, err error) {
	var ask struct {
		Last []string `json:"multi_last"`
	}
	for _, key := range keys {
		ask.Last = append(ask.Last, s.subject(key))
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	inbox := s.conn.NewInbox()
	answers, err := s.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, driver.Unavailable(err)
	}
	defer func() { _ = answers.Unsubscribe() }() // it fails only with the connection
	subject := s.api() + "DIRECT.GET." + s.stream()
	if err := s.conn.PublishRequest(subject, inbox, body); err != nil {
		return nil, s.because(ctx, subject, err)
	}
	for {
		m, err := answers.NextMsgWithContext(ctx)
		if err != nil {
			return nil, s.because(ctx, subject, err)
		}
		switch status := m.Header.Get("Status"); status {
		case "": // a key
			e, err := s.entry(m)
			if err != nil {
				return nil, err
			}
			found = append(found, e)
		case "204": // that was all
			return found, nil
		case "404":
			if m.Header.Get("Description") == nothingThere {
				return nil, nil
			}
			return nil, errMoved // one of them was written meanwhile
		case "503":
			return nil, s.because(ctx, subject, nats.ErrNoResponders)
		default:
			return nil, fmt.Errorf("natslock: a read is refused: %s %s", status, m.Header.Get("Description"))
		}
	}
}

// entry is what a message of an answer says.
func (s *Store) entry(m *nats.Msg) (*entry, error) {
	revision, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	at, errTime := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
	if err := errors.Join(err, errTime); err != nil {
		return nil, fmt.Errorf("natslock: an answer that makes no sense: %w", err)
	}
	return &entry{
		key: strings.TrimPrefix(m.Header.Get(jetstream.SubjectHeader), s.subject("")), revision: revision,
		time: at, value: string(m.Data), deleted: isDeletion(m.Header),
	}, nil
}

// isDeletion says whether a message stands for a key that was deleted, by a client or by the end of its TTL.
func isDeletion(h nats.Header) bool {
	return h.Get("KV-Operation") != "" || h.Get(jetstream.MarkerReasonHeader) != ""
}

// ask returns the last message of one key, as the leader has it.
func (s *Store) ask(ctx context.Context, key string) (*entry, error) {
	body, err := json.Marshal(map[string]string{"last_by_subj": s.subject(key)})
	if err != nil {
		return nil, err
	}
	m := nats.NewMsg(s.api() + "STREAM.MSG.GET." + s.stream())
	m.Data = body
	reply, err := s.request(ctx, m)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Sequence uint64    `json:"seq"`
			Time     time.Time `json:"time"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return nil, fmt.Errorf("natslock: an answer that makes no sense: %w", err)
	}
	if answer.Error != nil {
		if answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound {
			return nil, nil
		}
		return nil, refusal(answer.Error)
	}
	header := nats.Header{}
	if len(answer.Message.Header) > 0 {
		if header, err = nats.DecodeHeadersMsg(answer.Message.Header); err != nil {
			return nil, fmt.Errorf("natslock: an answer that makes no sense: %w", err)
		}
	}
	return &entry{
		key: key, revision: answer.Message.Sequence, time: answer.Message.Time,
		value: string(answer.Message.Data), deleted: isDeletion(header),
	}, nil
}
