package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/tasks"
)

// logPause is how long a line keeps others of the same text and template from being written.
const logPause = 10 * time.Second

// operatorLog is the observer that writes what an operator should see: what happened to which kind of lock, why, and what
// that means. It writes no names and labels, because they come from requests, and no text of a backend, because it may quote
// them. A nil operatorLog is silent.
//
// Nearly all events are no trouble, and of no use to it. So it is told of them only while the lock service fails.
type operatorLog struct {
	logger *slog.Logger // nil: slog.Default, whatever it is then
	names  bool         // lines have them
	events *events

	failing atomic.Bool // an answer is news

	// Below, what only the goroutine of events uses.

	since    time.Time // when the lock service began to fail; zero if it does not fail
	failures int       // since then
	told     bool      // the log has said that it fails
	toldHere bool      // the log has said that work goes on without it
	dropped  int       // events since the last line about them
	lines    map[string]*line
}

// line is one that was written.
type line struct {
	until time.Time // when the next one of its kind may be
	more  int       // how many were left out
}

func newLog(c *config, t *tasks.Group) *operatorLog {
	if c.silent {
		return nil
	}
	l := &operatorLog{logger: c.logger, names: c.names, lines: make(map[string]*line)}
	l.events = &events{observer: l.hear, tasks: t}
	return l
}

// wants says whether the log is told of an event of this kind, about err.
func (l *operatorLog) wants(kind EventKind, err error) bool {
	switch {
	case l == nil:
		return false
	case l.failing.Load():
		return true
	}
	switch kind {
	case EventLost, EventLongWait, EventDegraded:
		return true
	case EventRenewed, EventUnconfirmed:
		return err != nil
	case EventFailed:
		return fails(err)
	default:
		return false
	}
}

// tell never blocks.
func (l *operatorLog) tell(e Event) {
	if !l.wants(e.Kind, e.Err) {
		return
	}
	if e.fails() {
		l.failing.Store(true)
	}
	l.events.add(e)
}

// fails says that e is about a lock service that does not answer.
func (e *Event) fails() bool {
	return e.Kind == EventDegraded || (e.Kind == EventRenewed || e.Kind == EventFailed) && fails(e.Err)
}

func fails(err error) bool {
	return errors.Is(err, ErrUnavailable) && !errors.Is(err, errNotAsked) && !errors.Is(err, errFull) && !errors.Is(err, ErrDraining)
}

// hear is the observer.
func (l *operatorLog) hear(e Event) {
	switch {
	case e.fails():
		l.failed(e)
	case l.answered(e):
		l.back(e)
	}
	switch e.Kind {
	case EventLost:
		l.warn(e, "holdfast: lease lost while it was held, work that still runs was told to stop", slog.String("reason", string(e.Reason)),
			slog.String("because", e.Reason.because()), slog.Duration("held", e.Held))
	case EventUnconfirmed:
		l.warn(e, "holdfast: release not confirmed, the name comes free by its TTL at the latest", slog.String("error_type", errorType(e.Err)),
			slog.String("because", unavailability(e.Err)), slog.Duration("held", e.Held))
	case EventLongWait:
		attrs := []slog.Attr{slog.Duration("waited", e.Took), slog.Any("holds", e.HoldsOf)}
		if l.names {
			attrs = append(attrs, slog.String("holder", e.Holder), slog.Any("holds_names", e.Holds))
		}
		l.warn(e, "holdfast: a call has waited for three TTLs; if the holder of the name waits for this call, "+passOn, attrs...)
	case EventDropped:
		l.drop(e.Dropped)
	case eventPanicked:
		p := e.Err.(*panicked) //nolint:forcetypeassert,errorlint // it always is
		if more, due := l.due(p.text+p.at, e.At); due {
			l.write(e.Context, slog.LevelError, p.text, append(more, slog.String("with", p.with), slog.String("at", p.at))...)
		}
	default:
	}
}

// failed says once that the lock service is unavailable, and once that work goes on without it, and not for each call that finds out.
func (l *operatorLog) failed(e Event) {
	l.failing.Store(true) // an answer to somebody else may have been heard since it was told
	if l.since.IsZero() {
		l.since, l.failures = e.At, 0
	}
	l.failures++
	switch {
	case e.Kind == EventDegraded:
		l.toldHere = l.toldHere || l.warn(e, "holdfast: lock service unavailable, work with LocalOnly goes on and is exclusive in this process only",
			slog.String("because", unavailability(e.Err)))
	case !l.told:
		during := "acquire"
		if e.Kind == EventRenewed {
			during = "renew"
		}
		l.told = l.warn(e, "holdfast: lock service unavailable, new work is refused and leases end unless it answers in time",
			slog.String("during", during), slog.String("because", unavailability(e.Err)))
	}
}

// answered says that e is a sign that the lock service answers. What this process knows by itself is none.
func (l *operatorLog) answered(e Event) bool {
	switch e.Kind {
	case EventAcquired:
		return !e.Reentry && !e.Degraded
	case EventReleased, EventRenewed:
		return e.Err == nil && !e.Degraded
	case EventHeld:
		return e.said.After(l.since)
	case EventFailed:
		return errors.Is(e.Err, ErrDuplicate)
	default:
		return false
	}
}

func (l *operatorLog) back(e Event) {
	if l.told || l.toldHere {
		l.write(e.Context, slog.LevelInfo, "holdfast: lock service available again",
			slog.Duration("after", e.At.Sub(l.since)), slog.Int("failures", l.failures))
	}
	l.since, l.told, l.toldHere = time.Time{}, false, false
	l.failing.Store(false)
}

// drop says that events were not told. Lines of this log may be among them.
func (l *operatorLog) drop(n int) {
	l.dropped += n
	if _, due := l.due("dropped", time.Now()); due {
		l.write(context.Background(), slog.LevelWarn, "holdfast: events dropped, an observer or the log is too slow, or panics; locks are not affected",
			slog.Int("events", l.dropped))
		l.dropped = 0
	}
}

// warn writes a line, unless there was one like it a short time ago.
func (l *operatorLog) warn(e Event, text string, attrs ...slog.Attr) (written bool) {
	more, due := l.due(text+e.Template, e.At)
	if !due {
		return false
	}
	about := []slog.Attr{slog.String("template", e.Template)}
	if l.names {
		about = append(about, slog.String("name", e.Name))
	}
	l.write(e.Context, slog.LevelWarn, text, append(append(about, attrs...), more...)...)
	return true
}

// due says whether a line of this kind may be written now. more says how many were left out before it.
func (l *operatorLog) due(kind string, now time.Time) (more []slog.Attr, due bool) {
	last := l.lines[kind]
	if last != nil && now.Before(last.until) {
		last.more++
		return nil, false
	}
	if last != nil && last.more > 0 {
		more = []slog.Attr{slog.Int("more", last.more)}
	}
	if len(l.lines) > maxEvents { // somebody makes templates from requests
		clear(l.lines)
	}
	l.lines[kind] = &line{until: now.Add(logPause)}
	return more, true
}

// write hands a line to the handler. If that panics, the line is lost, because there is nobody else to tell: see events.hand.
func (l *operatorLog) write(ctx context.Context, level slog.Level, text string, attrs ...slog.Attr) {
	logger := l.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.LogAttrs(ctx, level, text, attrs...)
}

// eventPanicked is for the log only: a function of the user has panicked, or has ended its goroutine. Err is a *panicked.
const eventPanicked EventKind = 255

type panicked struct{ text, with, at string }

func (p *panicked) Error() string { return p.text }

// panicked is told of the value of a panic, nil for runtime.Goexit, by a deferred function. It notes where that was, and the
// value's type. The value itself may quote anything.
func (l *operatorLog) panicked(text string, value any) {
	if l == nil {
		return
	}
	with := "runtime.Goexit"
	if value != nil {
		with = fmt.Sprintf("%T", value)
	}
	l.events.add(Event{Kind: eventPanicked, Context: context.Background(), At: time.Now(), Err: &panicked{text, with, origin()}})
}
