package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// logPause is the shortest time after which the log says again that the lock service comes and
// goes, or that events are dropped.
const logPause = 10 * time.Second

// operatorLog writes what an operator should see: what happened to which kind of lock, why, and
// what that means. It writes no names and labels, because they come from requests, and no text of a
// backend, because it may quote them. One goroutine at a time uses it. A nil operatorLog is silent.
type operatorLog struct {
	logger *slog.Logger
	names  bool // lines have them

	failing  time.Time // when the lock service began to fail; zero if it does not fail
	failures int       // failures since then
	told     bool      // the log has said that it fails
	toldHere bool      // the log has said that work goes on without it
	tell     time.Time // when the log may say it again

	dropped     int // events since the last line about them
	tellDropped time.Time

	broken map[string]bool // functions of the observer that are known to fail
}

// drops is what Dropped and the log are told.
type drops struct{ all, fresh int }

func (b *operatorLog) write(event any) {
	if b == nil {
		return
	}
	b.hear(event)
	switch event := event.(type) {
	case LostEvent:
		b.warn(event.Subject, "holdfast: lease lost while it was held, work that still runs was told to stop",
			slog.String("reason", string(event.Reason)), slog.String("because", event.Reason.because()),
			slog.Duration("held", event.Held))
	case UnconfirmedEvent:
		b.warn(event.Subject, "holdfast: release not confirmed, the name comes free by its TTL at the latest",
			slog.String("error_type", errorType(event.Err)), slog.String("because", unavailability(event.Err)),
			slog.Duration("held", event.Held))
	case DegradedEvent:
		b.degraded(event.Subject, event.Err)
	case LongWaitEvent:
		b.longWait(event)
	case RenewedEvent:
		b.failed(event.Subject, "renew", event.Err)
	case FailedEvent:
		b.failed(event.Subject, "acquire", event.Err)
	case brokenHook:
		b.breaks("holdfast: a function of the observer panicked, the work has its caller's context; locks are not affected",
			"WorkContext", event.with, event.at)
	case drops:
		b.drop(event.fresh, time.Now())
	}
}

// hear looks for a sign that the lock service answers.
func (b *operatorLog) hear(event any) {
	switch event := event.(type) {
	case AcquiredEvent:
		b.answeredIf(!event.Reentry && !event.Degraded, event.Subject)
	case ReleasedEvent:
		b.answeredIf(!event.Degraded, event.Subject)
	case RenewedEvent:
		b.answeredIf(event.Err == nil, event.Subject)
	case HeldEvent:
		b.answeredIf(event.said.After(b.failing), event.Subject)
	case FailedEvent:
		b.answeredIf(errors.Is(event.Err, ErrDuplicate), event.Subject)
	}
}

// failed says once that the lock service is unavailable, and not for each call that finds out.
func (b *operatorLog) failed(s Subject, during string, err error) {
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, errNotAsked) || errors.Is(err, ErrDraining) {
		return
	}
	b.count(s)
	if b.told || s.At.Before(b.tell) {
		return
	}
	b.told = true
	b.warn(s, "holdfast: lock service unavailable, new work is refused and leases end unless it answers in time",
		slog.String("during", during), slog.String("because", unavailability(err)))
}

func (b *operatorLog) count(s Subject) {
	if b.failing.IsZero() {
		b.failing, b.failures = s.At, 0
	}
	b.failures++
}

// degraded says once that work goes on without the lock service.
func (b *operatorLog) degraded(s Subject, err error) {
	b.count(s)
	if b.toldHere || s.At.Before(b.tell) {
		return
	}
	b.toldHere = true
	b.warn(s, "holdfast: lock service unavailable, work with LocalOnly goes on and is exclusive in this process only",
		slog.String("because", unavailability(err)))
}

func (b *operatorLog) answeredIf(answered bool, s Subject) {
	if !answered {
		return
	}
	if b.told || b.toldHere {
		b.log(s.Context, slog.LevelInfo, "holdfast: lock service available again",
			slog.Duration("after", s.At.Sub(b.failing)), slog.Int("failures", b.failures))
		b.tell = s.At.Add(logPause)
	}
	b.failing, b.told, b.toldHere = time.Time{}, false, false
}

// drop says that events were not told. Lines of this log may be among them.
func (b *operatorLog) drop(events int, now time.Time) {
	b.dropped += events
	if b.dropped == 0 || now.Before(b.tellDropped) {
		return
	}
	b.log(context.Background(), slog.LevelWarn,
		"holdfast: events dropped, the observer or the log is too slow, or panics; locks are not affected",
		slog.Int("events", b.dropped))
	b.dropped, b.tellDropped = 0, now.Add(logPause)
}

// panicked says once for each function of the observer that it fails: where, and with a value of
// what type. The value itself may quote anything, so it is not logged.
func (b *operatorLog) panicked(event, value any) {
	if b == nil {
		return
	}
	function := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", event), "core."), "Event")
	if _, ok := event.(drops); ok {
		function = "Dropped"
	}
	with := "runtime.Goexit"
	if value != nil {
		with = fmt.Sprintf("%T", value)
	}
	b.breaks("holdfast: a function of the observer panicked, its event counts as dropped; locks are not affected",
		function, with, origin())
}

// breaks says once for each function of the observer that it fails.
func (b *operatorLog) breaks(text, function, with, at string) {
	if b.broken[function] {
		return
	}
	if b.broken == nil {
		b.broken = make(map[string]bool)
	}
	b.broken[function] = true
	b.log(context.Background(), slog.LevelError, text,
		slog.String("function", function), slog.String("with", with), slog.String("at", at))
}

func (b *operatorLog) warn(s Subject, text string, attrs ...slog.Attr) {
	about := []slog.Attr{slog.String("template", s.Template)}
	if b.names {
		about = append(about, slog.String("name", s.Name))
	}
	b.log(s.Context, slog.LevelWarn, text, append(about, attrs...)...)
}

// log writes a line. If the handler panics, the line is lost, because there is nobody else to tell.
func (b *operatorLog) log(ctx context.Context, level slog.Level, text string, attrs ...slog.Attr) {
	defer func() { _ = recover() }()
	b.logger.LogAttrs(ctx, level, text, attrs...)
}

// origin returns where the code is that has panicked, or has ended its goroutine. It is called by a
// deferred function.
func origin() string {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for ended := false; ; {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if ended && !inRuntime || !more {
			return fmt.Sprintf("%s:%d", frame.Function, frame.Line)
		}
		ended = ended || inRuntime
	}
}

// because explains a reason to an operator.
func (r Reason) because() string {
	switch r {
	case ReasonExpired:
		return "its time was over before it was renewed: the process or machine stood still, or it is not renewed at all"
	case ReasonTaken:
		return "the lock service says that the name is not ours: it was deleted there, or lost in a failover"
	case ReasonUnreachable:
		return "the lock service did not answer any renewal until its time was over"
	case ReasonMaxHold:
		return "it was held for as long as WithMaxHold allows"
	default:
		return ""
	}
}

// unavailability is what an operator can learn from an error that matches ErrUnavailable, without
// its text: where to look. A backend may have said so itself, with driver.Because. The rest claims no
// more than what is known of the errors of every client.
func unavailability(err error) string {
	slow, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	why := driver.Reason(err)
	dial, isNet := errors.AsType[*net.OpError](err)
	switch {
	case why != "":
		return why
	case isNet && dial.Op == "dial":
		return "no connection to it could be had"
	case errors.Is(err, driver.ErrNotSent): // also a dial that takes too long
		return "it refused the command, or no connection to it could be had"
	case errors.Is(err, errNoAnswer), errors.Is(err, errTooShort), errors.Is(err, errLate), errors.Is(err, errOver),
		ok && slow.Timeout():
		return "it did not answer in time"
	case errors.Is(err, driver.ErrCannotAnswer):
		return "it cannot answer anybody now"
	default:
		return "the connection broke, or the answer was an error or made no sense"
	}
}

// errorType is the low-cardinality kind of an error.
func errorType(err error) string {
	if typed, ok := errors.AsType[interface {
		error
		ErrorType() string
	}](err); ok {
		return typed.ErrorType()
	}
	return "other"
}
