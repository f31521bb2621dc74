package taskmw

import (
	"context"
	"sync/atomic"
	"time"
)

// mark is what [Configure] leaves in the context of a server's tasks. By it the middleware knows that
// the server is configured, and whether it still was when it began: a config's IsFailure that was set
// after Configure is never seen by us, except that asynq does not ask ours.
type mark struct {
	refused atomic.Int64 // when asynq was first given a conflict to retry, in Unix nanoseconds
	asked   atomic.Bool  // asynq has asked our IsFailure about one
}

// asking is longer than asynq needs from a task's error to IsFailure.
const asking = time.Second

type configuredKey struct{}

func markOf(ctx context.Context) *mark {
	m, _ := ctx.Value(configuredKey{}).(*mark)
	return m
}

// refusing takes note of a conflict that asynq has to retry.
func (m *mark) refusing() {
	if m != nil && m.refused.Load() == 0 {
		m.refused.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// missing says what the server's config lacks, "" for nothing.
func (m *mark) missing() string {
	switch {
	case m == nil:
		return "the asynq.Config of this server was not given to taskmw.Configure"
	case m.asked.Load():
		return ""
	}
	if at := m.refused.Load(); at != 0 && time.Since(time.Unix(0, at)) > asking {
		return "the asynq.Config of this server got another IsFailure after taskmw.Configure: call Configure last"
	}
	return ""
}
