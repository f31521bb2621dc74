package observe

import (
	"errors"
	"net/http"
)

// behind is a writer that leads to what it cannot do itself, by its Unwrap. [http.ResponseController] goes that way, so it is
// watched too.
type behind struct {
	http.ResponseWriter // watched

	next unwrapper // the same, as it is
	seen *Response
}

type unwrapper interface{ Unwrap() http.ResponseWriter }

// Unwrap is for [http.ResponseController].
func (b *behind) Unwrap() http.ResponseWriter { return b.seen.watch(b.next.Unwrap()) }

// FlushError is what http.ResponseController calls, also if the writer itself can flush.
func (b *behind) FlushError() error {
	err := http.NewResponseController(b.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		b.seen.saw(http.StatusOK)
	}
	return err
}

// through is the watched writer of w, unless w leads to more than it can do itself. It can do no more than w.
func (o *Response) through(w, watched http.ResponseWriter) http.ResponseWriter {
	next, ok := w.(unwrapper)
	if !ok {
		return watched
	}
	flusher, flushes := watched.(http.Flusher)
	hijacker, hijacks := watched.(http.Hijacker)
	b := &behind{watched, next, o}
	switch {
	case (flushes || !reaches[http.Flusher](next)) && (hijacks || !reaches[http.Hijacker](next)):
		return watched
	case flushes:
		return struct {
			*behind
			http.Flusher
		}{b, flusher}
	case hijacks:
		return struct {
			*behind
			http.Hijacker
		}{b, hijacker}
	default:
		return b
	}
}

// reaches says whether Unwrap leads to a T.
func reaches[T any](from unwrapper) bool {
	for ok := true; ok; {
		w := from.Unwrap()
		if _, found := w.(T); found {
			return true
		}
		from, ok = w.(unwrapper)
	}
	return false
}
