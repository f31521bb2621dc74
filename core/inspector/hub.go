package inspector

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/look"
	"github.com/holdfast-go/holdfast/core/operate"
)

// every is how often it looks, while somebody watches.
const every = time.Second

// hub looks for all who watch. One goroutine does it, from the first of them to the last.
type hub struct {
	source  look.Source
	prefix  string
	history *history
	closed  chan struct{}

	mu      sync.Mutex // protects what follows
	viewers map[chan struct{}]bool
	stop    context.CancelFunc // of the goroutine; nil if there is none
	gone    chan struct{}      // closed when the last goroutine has ended
	ended   bool
	latest  *sight
	last    time.Time // of the last look
	latency []time.Duration
}

// sight is what one look has seen. It is never changed.
type sight struct {
	at      time.Time
	picture look.Picture
	err     error
	latency []time.Duration // of the last looks, the newest last

	contended []strifeRow // found once for all who watch
}

func newHub(source look.Source, prefix string, history *history) *hub {
	gone := make(chan struct{})
	close(gone)
	return &hub{
		source: source, prefix: prefix, history: history, closed: make(chan struct{}), gone: gone,
		viewers: make(map[chan struct{}]bool),
	}
}

// join returns a channel that gets a value when there is something new to see, and a function to leave.
func (h *hub) join() (news <-chan struct{}, leave func()) {
	viewer := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.viewers[viewer] = true
	if h.latest != nil && (h.stop != nil || time.Since(h.last) < every) { // else it is of when somebody watched last
		viewer <- struct{}{}
	}
	if h.stop == nil && !h.ended {
		var ctx context.Context
		ctx, h.stop = context.WithCancel(context.Background())
		before := h.gone
		h.gone = make(chan struct{})
		go h.run(ctx, before, h.gone, h.last)
	}
	return viewer, sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.viewers, viewer)
		if len(h.viewers) == 0 && h.stop != nil {
			h.stop()
			h.stop = nil
		}
	})
}

// run looks until ctx ends. A page that is loaded again and again does not make it look more often.
func (h *hub) run(ctx context.Context, before <-chan struct{}, gone chan<- struct{}, last time.Time) {
	defer close(gone)
	<-before
	looker := look.New(h.source, h.prefix, func(name string) bool { return strings.HasPrefix(name, h.prefix) })
	defer looker.Close()
	timer := time.NewTimer(time.Until(last.Add(every)))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		picture, err := looker.Look(ctx)
		if ctx.Err() != nil {
			return
		}
		h.seen(began, picture, err)
		timer.Reset(time.Until(began.Add(every)))
	}
}

func (h *hub) seen(began time.Time, picture look.Picture, err error) {
	now := time.Now()
	if err == nil {
		h.history.look(now, h.prefix, picture)
	}
	contended := h.history.contended(now, h.prefix)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = began
	const most = 60
	h.latency = append(h.latency[max(0, len(h.latency)-most+1):len(h.latency):len(h.latency)], now.Sub(began))
	h.latest = &sight{now, picture, err, h.latency, contended}
	for viewer := range h.viewers {
		select {
		case viewer <- struct{}{}:
		default: // it has not read the last one yet
		}
	}
}

func (h *hub) now() *sight {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.latest
}

func (h *hub) close() {
	h.mu.Lock()
	if !h.ended {
		h.ended = true
		close(h.closed)
	}
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	gone := h.gone
	h.mu.Unlock()
	<-gone
}

var _ look.Source = operate.Operator{}
