package inspector

import (
	"log/slog"
	"net/http"
)

// Option configures a [Handler].
type Option interface{ apply(*Handler) }

type optionFunc func(*Handler)

func (f optionFunc) apply(h *Handler) { f(h) }

// Action is a change that somebody asks for: to take a name from its holder, or to remove a dedup marker.
type Action struct {
	Name string
	// Handle says from which holder.
	Handle string
	// Marker says that the marker of Scope is to be removed, so that its work can be done again.
	Marker bool
	Scope  string
}

// WithAuthorization makes changes possible. allow says who asks, for the audit record, or returns an error
// if they may not. The error goes to the log, and not to them.
//
// The default is a page that only shows. The last one wins.
func WithAuthorization(allow func(*http.Request, Action) (who string, err error)) Option {
	return optionFunc(func(h *Handler) { h.allow = allow })
}

// WithLogger sets where audit records go: a warning for each change that was asked for, with who asked,
// the name, the handle or scope, and the result. The default, which nil also means, is slog.Default().
func WithLogger(log *slog.Logger) Option {
	return optionFunc(func(h *Handler) { h.log = log })
}

// WithPrefix shows only names that begin with prefix. The default is all. Changes of other names are
// refused, too.
func WithPrefix(prefix string) Option {
	return optionFunc(func(h *Handler) { h.prefix = prefix })
}

// WithTitle says what the page is about, such as the lock service's address, without a password. The
// default is none.
func WithTitle(title string) Option {
	return optionFunc(func(h *Handler) { h.title = title })
}

// WithRecorder adds what a recorder has seen in this process.
func WithRecorder(r *Recorder) Option {
	return optionFunc(func(h *Handler) { h.recorder = r })
}
