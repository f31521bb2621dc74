package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// logPause is the shortest time after which the log says the same again.
const logPause = 10 * time.Second

// operatorLog is the observer that writes what an operator should see: what happened to which kind of lock, why, and
// what that means. It writes no names and labels, because they come from requests, and no text of a
// backend, because it may quote them. It is told by one goroutine at a time.
type operatorLog struct {
	logger *slog.Logger // nil: slog.Default, as it is then
	names  bool         // lines have them

	fails    atomic.Bool // the lock service fails: what it answers is looked at
	failing  time.Time   // when it began to fail; zero if it does not
	failures int         // failures since then
	told     bool        // the log has said that it fails
	toldHere bool        // the log has said that work goes on without it
	tell     time.Time   // when the log may say it again

	lines map[string]*logLine // by text, and by template or place
}

// logLine keeps others of the same kind away for logPause, because an outage can cost thousands of leases at once.
type logLine struct {
	until time.Time
	more  int // how many were left out
}

// eventPanicked is for the log alone: a function of an observer panicked, or ended its goroutine.
const eventPanicked EventKind = 255

// wants says of which events the log is told: in good times none of those that each call makes. Calls ask it often, so it allocates
// nothing.
func (b *operatorLog) wants(kind EventKind, failed bool) bool {
	switch kind {
	case EventAcquired, EventHeld, EventReleased:
		return b.fails.Load()
	case EventRenewed:
		return failed || b.fails.Load()
	case EventWaiting, EventWaited, EventLimited, EventMissed:
		return false
	default:
		return true
	}
}

func (b *operatorLog) observe(e Event) {
	switch e.Kind {
	case EventLost:
		b.warn(e, "holdfast: lease lost while it was held, work that still runs was told to stop",
			slog.String("reason", string(e.Reason)), slog.String("because", e.Reason.because()), slog.Duration("held", e.Held))
	case EventUnconfirmed:
		b.warn(e, "holdfast: release not confirmed, the name comes free by its TTL at the latest",
			slog.String("error_type", "unavailable"), slog.String("because", unavailability(e.Err)), slog.Duration("held", e.Held))
	case EventDegraded:
		b.fail(e, &b.toldHere, "holdfast: lock service unavailable, work with LocalOnly goes on and is exclusive in this process only")
	case EventLongWait:
		b.longWait(e)
	case EventRenewed:
		b.failed(e, "renew")
		b.answeredIf(e.Err == nil, e)
	case EventFailed:
		b.failed(e, "acquire")
		b.answeredIf(errors.Is(e.Err, ErrDuplicate), e)
	case EventAcquired, EventReleased:
		b.answeredIf(!e.Reentry && !e.Degraded, e)
	case EventHeld:
		b.answeredIf(e.said.After(b.failing), e) // what this process knows by itself is no sign
	case EventDropped:
		b.warn(e, "holdfast: events dropped, an observer or the log is too slow, or panics; locks are not affected", slog.Int("events", e.Dropped))
	case eventPanicked:
		p := e.Err.(*panicError) //nolint:errorlint,forcetypeassert // our own, as it is
		b.line(e, slog.LevelError, p.at, "holdfast: a function of "+p.of+" panicked, "+p.means+"; locks are not affected",
			slog.String("with", p.with), slog.String("at", p.at))
	default:
	}
}

// failed says that the lock service is unavailable.
func (b *operatorLog) failed(e Event, during string) {
	if !errors.Is(e.Err, ErrUnavailable) || errors.Is(e.Err, errNotAsked) || errors.Is(e.Err, errFull) || errors.Is(e.Err, ErrDraining) {
		return
	}
	b.fail(e, &b.told, "holdfast: lock service unavailable, new work is refused and leases end unless it answers in time", slog.String("during", during))
}

// fail says once what a failure means, and not for each call that finds out.
func (b *operatorLog) fail(e Event, told *bool, text string, attrs ...slog.Attr) {
	if b.failing.IsZero() {
		b.failing, b.failures = e.At, 0
		b.fails.Store(true)
	}
	b.failures++
	if !*told && !e.At.Before(b.tell) {
		*told = true
		b.warn(e, text, append(attrs, slog.String("because", unavailability(e.Err)))...)
	}
}

// answeredIf is for a sign that the lock service answers.
func (b *operatorLog) answeredIf(answered bool, e Event) {
	if !answered || e.At.Before(b.failing) {
		return
	}
	if b.told || b.toldHere {
		b.log(e.Context, slog.LevelInfo, "holdfast: lock service available again",
			slog.Duration("after", e.At.Sub(b.failing)), slog.Int("failures", b.failures))
		b.tell = e.At.Add(logPause)
	}
	b.failing, b.told, b.toldHere = time.Time{}, false, false
	b.fails.Store(false)
}

func (b *operatorLog) longWait(e Event) {
	attrs := []slog.Attr{slog.Duration("waited", e.Took), slog.Any("holds", e.HoldsOf)}
	if b.names {
		attrs = append(attrs, slog.String("holder", e.Holder), slog.Any("holds_names", e.Holds))
	}
	b.warn(e, "holdfast: a call has waited for three TTLs; if the holder of the name waits for this call, "+passOn, attrs...)
}

func (b *operatorLog) warn(e Event, text string, attrs ...slog.Attr) {
	b.line(e, slog.LevelWarn, e.Template, text, attrs...)
}

// line writes a line about e, unless there was one of that text and kind lately.
func (b *operatorLog) line(e Event, level slog.Level, kind, text string, attrs ...slog.Attr) {
	kind = text + kind
	if last := b.lines[kind]; last != nil {
		if e.At.Before(last.until) {
			last.more++
			return
		}
		if last.more > 0 {
			attrs = append(attrs, slog.Int("more", last.more))
		}
	}
	if b.lines == nil || len(b.lines) >= maxEvents { // somebody makes templates from requests
		b.lines = make(map[string]*logLine)
	}
	b.lines[kind] = &logLine{until: e.At.Add(logPause)}
	about := []slog.Attr{slog.String("template", e.Template)}
	if b.names {
		about = append(about, slog.String("name", e.Name))
	}
	b.log(e.Context, level, text, append(about, attrs...)...)
}

func (b *operatorLog) log(ctx context.Context, level slog.Level, text string, attrs ...slog.Attr) {
	logger := b.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.LogAttrs(ctx, level, text, attrs...)
}

// panicError says where a function of the user panicked, and with a value of what type. The value itself may quote
// anything, so it is not kept.
type panicError struct{ of, means, with, at string }

func (e *panicError) Error() string { return "panic with " + e.with + " at " + e.at }

// panicOf is for a deferred function: value is what recover has returned.
func panicOf(of, means string, value any) Event {
	with := "runtime.Goexit"
	if value != nil {
		with = fmt.Sprintf("%T", value)
	}
	return Event{Kind: eventPanicked, At: time.Now(), Err: &panicError{of, means, with, origin()}}
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
		ended = inRuntime
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
	case errors.Is(err, errNoAnswer), errors.Is(err, errLate), ok && slow.Timeout():
		return "it did not answer in time"
	case errors.Is(err, driver.ErrCannotAnswer):
		return "it cannot answer anybody now"
	default:
		return "the connection broke, or the answer was an error or made no sense"
	}
}
