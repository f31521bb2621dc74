package inspector

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// attentionRow is a line of what an operator should look at. Name is what it is about, if that is one name.
type attentionRow struct {
	Name string `json:"name,omitempty"`
	Text string `json:"text"`
}

// mostAttention is how many lines a page gets.
const mostAttention = 20

// longWait is, in TTLs, how long a call may wait before the log of core tells of it.
const longWait = 3

// attention is what is wrong, the most urgent first: holders that do not renew, long waits, and what this process has
// met. The caller holds the mutex.
func (h *history) attention(infos []inspect.LeaseInfo, v healthView, now time.Time) []attentionRow {
	rows := []attentionRow{}
	var waits []inspect.LeaseInfo
	for _, info := range infos {
		full := info.Remaining
		if s := h.names[info.Name]; s != nil {
			full = max(full, s.full)
		}
		switch {
		case h.unrenewed(info, full, now):
			rows = append(rows, attentionRow{info.Name, fmt.Sprintf(
				"is not renewed: its holder is dead or cut off, and it comes free in %s", about(info.Remaining))})
		case full > 0 && waited(info) > longWait*full:
			waits = append(waits, info)
		}
	}
	slices.SortStableFunc(waits, func(a, b inspect.LeaseInfo) int { return cmp.Compare(waited(b), waited(a)) })
	for _, info := range waits {
		rows = append(rows, attentionRow{info.Name, fmt.Sprintf("has a call that has waited for %s", about(waited(info)))})
	}
	if v.Degraded > 0 {
		rows = append(rows, attentionRow{Text: fmt.Sprintf("Held without the lock service, in this process only: %d", v.Degraded)})
	}
	if ago := now.Sub(time.UnixMilli(v.LastOutage)); v.LastOutage > 0 && ago < time.Minute {
		rows = append(rows, attentionRow{Text: fmt.Sprintf("The lock service did not answer this process %s ago: %s", about(ago), v.LastError)})
	}
	return rows[:min(len(rows), mostAttention)]
}

// unrenewed says whether a holder that has renewed before does not any more. A healthy one never has less than a third
// left.
func (h *history) unrenewed(info inspect.LeaseInfo, full time.Duration, now time.Time) bool {
	switch info.Kind {
	case inspect.HoldExclusive, inspect.HoldShared, inspect.HoldLimited:
	default: // by nobody, or somebody who may never renew
		return false
	}
	held := info.HeldFor
	if s := h.names[info.Name]; s != nil && held == 0 {
		ms, _ := s.heldFor(now)
		held = time.Duration(ms) * time.Millisecond
	}
	return info.Remaining > 0 && info.Remaining < full/3 && held > full
}

// waited is how long the one waits who has waited longest.
func waited(info inspect.LeaseInfo) (longest time.Duration) {
	for _, w := range info.Line {
		if w.Alive {
			longest = max(longest, w.Waited)
		}
	}
	for _, w := range info.Process.Waiters { // they share one entry
		longest = max(longest, w.Waited)
	}
	return longest
}

// about is a duration as a person says it.
func about(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int64(d/time.Second))
	}
	return fmt.Sprintf("%d min", int64(d/time.Minute))
}
