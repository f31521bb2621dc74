package inspector

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// What the page's script reads. Times are milliseconds since 1970, durations milliseconds; fences are
// strings, since a number of JavaScript has 53 bits.

type nowView struct {
	Now       int64       `json:"now"`
	Title     string      `json:"title"`
	Error     string      `json:"error,omitempty"`
	Whole     bool        `json:"whole"`
	Every     int64       `json:"every"`
	Release   bool        `json:"release"`
	Total     int         `json:"total"`
	Waiting   int         `json:"waiting"`
	Names     []nameView  `json:"names"`
	Contended []strifeRow `json:"contended"`

	Attention []attentionRow `json:"attention"`

	Health healthView `json:"health"`
}

type nameView struct {
	Name     string       `json:"name"`
	Template string       `json:"template,omitempty"`
	Kind     string       `json:"kind"`
	Limit    int          `json:"limit,omitempty"`
	Label    string       `json:"label,omitempty"`
	Fence    string       `json:"fence,omitempty"`
	Handle   string       `json:"handle,omitempty"`
	TTL      int64        `json:"ttl"`
	Full     int64        `json:"full"` // the most that was seen of it
	For      int64        `json:"for"`
	AtLeast  bool         `json:"atLeast,omitempty"` // it may be held for longer: nobody has said when it began
	Holders  []holderView `json:"holders,omitempty"`
	Line     []waiterView `json:"line,omitempty"`
	Own      []waiterView `json:"own,omitempty"`   // calls of this process
	Nodes    []nodeView   `json:"nodes,omitempty"` // of a quorum, where they disagree
}

type nodeView struct {
	Silent bool   `json:"silent,omitempty"`
	Held   bool   `json:"held,omitempty"`
	Label  string `json:"label,omitempty"`
	Handle string `json:"handle,omitempty"`
}

type holderView struct {
	Label  string `json:"label,omitempty"`
	Handle string `json:"handle"`
	TTL    int64  `json:"ttl"`
	For    int64  `json:"for,omitempty"`
}

type waiterView struct {
	Label  string `json:"label,omitempty"`
	Waited int64  `json:"waited,omitempty"`
	Alive  bool   `json:"alive"`
}

type strifeRow struct {
	Name      string `json:"name"`
	Waits     int    `json:"waits"`
	Waited    int64  `json:"waited"`
	Conflicts int    `json:"conflicts"`
	Losses    int    `json:"losses"`
}

type healthView struct {
	Latency     []float64 `json:"latency"`
	Recorded    bool      `json:"recorded"`
	Held        int       `json:"held"`
	Waiting     int       `json:"waiting"`
	Degraded    int       `json:"degraded"`
	Lost        int       `json:"lost"`
	Unconfirmed int       `json:"unconfirmed"`
	Outages     int       `json:"outages"`
	LastOutage  int64     `json:"lastOutage,omitempty"`
	LastError   string    `json:"lastError,omitempty"`
}

// mostShown is how many names a browser gets; it says which by a search.
const mostShown = 500

// view is what a browser gets that searches for some text.
func (h *Handler) view(s *sight, search string) nowView {
	v := nowView{
		Now: s.at.UnixMilli(), Title: h.title, Whole: s.picture.Whole, Every: s.picture.Every.Milliseconds(), Release: h.allow != nil,
		Names: []nameView{}, Contended: s.contended,
	}
	if s.err != nil {
		v.Error = s.err.Error()
	}
	search = strings.ToLower(search)
	infos := slices.DeleteFunc(slices.Clone(s.picture.Infos), func(info inspect.LeaseInfo) bool { return !matches(info, search) })
	slices.SortStableFunc(infos, func(a, b inspect.LeaseInfo) int { return cmp.Compare(len(b.Line), len(a.Line)) })
	v.Total = len(infos)
	for _, info := range infos {
		v.Waiting += len(info.Line)
	}
	hist := h.recorder.history
	hist.mu.Lock()
	defer hist.mu.Unlock()
	for _, info := range infos[:min(len(infos), mostShown)] {
		v.Names = append(v.Names, hist.nameView(info, s.at))
	}
	v.Health = hist.health(s, h.prefix)
	v.Attention = hist.attention(s.picture.Infos, v.Health, s.at)
	return v
}

// matches says whether a name or one of its holders has the text, in lower case.
func matches(info inspect.LeaseInfo, search string) bool {
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), search) }
	return has(info.Name) || has(info.Label) || slices.ContainsFunc(info.Holders, func(h inspect.HolderInfo) bool { return has(h.Label) })
}

// nameView is one row. The caller holds the mutex.
func (h *history) nameView(info inspect.LeaseInfo, now time.Time) nameView {
	v := nameView{
		Name: info.Name, Kind: string(info.Kind), Limit: info.Limit, Label: info.Label, Handle: info.Handle, Fence: digits(info.Fence),
		TTL: info.Remaining.Milliseconds(), Full: info.Remaining.Milliseconds(), For: info.HeldFor.Milliseconds(),
	}
	for _, one := range info.Holders {
		v.Holders = append(v.Holders, holderView{one.Label, one.Handle, one.Remaining.Milliseconds(), one.HeldFor.Milliseconds()})
	}
	slices.SortFunc(v.Holders, func(a, b holderView) int { return cmp.Compare(a.Handle, b.Handle) }) // so that rows stay where they are
	for _, in := range info.Line {
		v.Line = append(v.Line, waiterView{in.Label, in.Waited.Milliseconds(), in.Alive})
	}
	for _, w := range info.Process.Waiters[:min(len(info.Process.Waiters), mostOwn)] {
		v.Own = append(v.Own, waiterView{w.Label, w.Waited.Milliseconds(), true})
	}
	for _, n := range info.Nodes {
		v.Nodes = append(v.Nodes, nodeView{n.Silent, n.Held, n.Label, n.Handle})
	}
	if own := info.Process.Leases; v.For == 0 && len(own) > 0 { // a backend may not know it yet
		v.For = own[0].HeldFor.Milliseconds()
	}
	s := h.names[info.Name]
	if s == nil {
		return v
	}
	v.Template = s.template
	v.Full = max(s.full, info.Remaining).Milliseconds()
	if v.For == 0 {
		v.For, v.AtLeast = s.heldFor(now)
	}
	return v
}

// heldFor says since when there has been a holder, as far as it was seen.
func (s *story) heldFor(now time.Time) (ms int64, atLeast bool) {
	atLeast = true
	for _, t := range s.holds {
		if t.open {
			ms, atLeast = max(ms, now.Sub(t.from).Milliseconds()), atLeast && !t.ours && !t.since
		}
	}
	return ms, atLeast
}

func digits(fence uint64) string {
	if fence == 0 {
		return ""
	}
	return strconv.FormatUint(fence, 10)
}

// mostOwn is how many waiting calls of this process a row tells of.
const mostOwn = 100

// mostContended is how many names the list of them has.
const mostContended = 20

// contended are the names for which others waited longest, together: of those that begin with prefix.
func (h *history) contended(now time.Time, prefix string) []strifeRow {
	h.mu.Lock()
	defer h.mu.Unlock()
	rows := []strifeRow{}
	since := now.Add(-past)
	for name, s := range h.names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		row := strifeRow{Name: name}
		for _, w := range s.waits {
			if w.to.After(since) {
				row.Waits++
				row.Waited += w.to.Sub(w.from).Milliseconds()
			}
		}
		for _, m := range s.marks {
			switch {
			case !m.at.After(since):
			case m.kind == "lost":
				row.Losses++
			default:
				row.Conflicts++
			}
		}
		if row.Waits+row.Conflicts+row.Losses > 0 {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b strifeRow) int {
		return cmp.Or(cmp.Compare(b.Waited, a.Waited), cmp.Compare(b.Conflicts, a.Conflicts), cmp.Compare(a.Name, b.Name))
	})
	return rows[:min(len(rows), mostContended)]
}

// health is about this process, and tells no name that does not begin with prefix. The caller holds the mutex.
func (h *history) health(s *sight, prefix string) healthView {
	v := healthView{
		Latency: []float64{}, Recorded: h.observed,
		Held: h.count.held, Waiting: h.count.waiting, Degraded: h.count.degraded, Lost: h.count.lost, Unconfirmed: h.count.unconfirmed,
		Outages: h.count.outages, LastError: h.count.lastError,
	}
	if !h.count.lastOutage.IsZero() {
		v.LastOutage = h.count.lastOutage.UnixMilli()
		if !strings.HasPrefix(h.count.lastName, prefix) {
			v.LastError = "with a name that this page is not about"
		}
	}
	for _, d := range s.latency {
		v.Latency = append(v.Latency, float64(d.Microseconds())/1000)
	}
	return v
}

type historyView struct {
	Now   int64      `json:"now"`
	Past  int64      `json:"past"`
	Name  string     `json:"name"`
	Holds []spanView `json:"holds"`
	Waits []spanView `json:"waits"`
	Marks []markView `json:"marks"`
}

type spanView struct {
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Open  bool   `json:"open,omitempty"`
	Label string `json:"label,omitempty"`
	Kind  string `json:"kind,omitempty"`
	Fence string `json:"fence,omitempty"`
	End   string `json:"end,omitempty"`
}

type markView struct {
	At   int64  `json:"at"`
	Kind string `json:"kind"`
	Text string `json:"text,omitempty"`
}

// history answers with what has happened to a name, from memory.
func (h *Handler) history(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if !strings.HasPrefix(name, h.prefix) { // a recorder knows all names of the process
		fail(w, http.StatusForbidden, "this page is not about that name")
		return
	}
	answer(w, http.StatusOK, h.recorder.history.view(name, time.Now()))
}

func (h *history) view(name string, now time.Time) historyView {
	v := historyView{
		Now: now.UnixMilli(), Past: past.Milliseconds(), Name: name,
		Holds: []spanView{}, Waits: []spanView{}, Marks: []markView{},
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.names[name]
	if s == nil {
		return v
	}
	since := now.Add(-past)
	for _, t := range s.holds {
		if t.open && t.ours {
			t.to = now
		}
	}
	for _, t := range s.holds {
		if label, twin := s.twin(t); t.to.After(since) && (t.ours || !twin) {
			v.Holds = append(v.Holds, spanView{t.from.UnixMilli(), t.to.UnixMilli(), t.open, cmp.Or(t.label, label), t.kind, digits(t.fence), t.end})
		}
	}
	for _, w := range s.waits {
		if w.to.After(since) {
			v.Waits = append(v.Waits, spanView{From: w.from.UnixMilli(), To: w.to.UnixMilli(), Open: w.open, End: w.end})
		}
	}
	for _, m := range s.marks {
		if m.at.After(since) {
			v.Marks = append(v.Marks, markView{m.at.UnixMilli(), m.kind, m.text})
		}
	}
	return v
}

// twin finds the same hold as the other source has told it: by its fence, or else, of an exclusive name, as
// the one that lasted at the same time. It returns the label, which only looks know.
func (s *story) twin(t *hold) (label string, found bool) {
	most := time.Duration(-1)
	for _, o := range s.holds {
		if o.ours == t.ours {
			continue
		}
		if o.fence == t.fence && t.fence > 0 {
			return o.label, true
		}
		if both, same := o.beside(t); same && o.kind == "exclusive" && t.kind == "exclusive" && both > most {
			label, found, most = o.label, true, both
		}
	}
	return label, found
}

// beside says for how long both have lasted at the same time, and whether that is most of one of them. It is
// not if one process takes the name after the other: a release is told a little later than the next grant.
func (t *hold) beside(o *hold) (both time.Duration, most bool) {
	both = min(t.to.Sub(o.from), o.to.Sub(t.from), t.to.Sub(t.from), o.to.Sub(o.from))
	return both, both >= 0 && 2*both >= min(t.to.Sub(t.from), o.to.Sub(o.from))
}
