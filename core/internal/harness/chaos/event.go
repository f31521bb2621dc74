//go:build linux

package chaos

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Kind is what an Event tells.
type Kind string

// A call has an event before it, and one after it.
const (
	Asked     Kind = "asked"     // an acquire begins
	Answered  Kind = "answered"  // it has returned
	Believed  Kind = "believed"  // at Last the lease said that it may be trusted
	Releasing Kind = "releasing" // a release begins; the lease was last trusted at Last
	Released  Kind = "released"  // it has returned
	Wrote     Kind = "wrote"     // the store's: a write has arrived
	Faulted   Kind = "faulted"   // the run's: a fault began
	Healed    Kind = "healed"    // the run's: that fault, or all of them, ended
	Probed    Kind = "probed"    // a worker got a name after the heal
	Left      Kind = "left"      // what a worker has left of goroutines and descriptors
	Closed    Kind = "closed"    // a Locker's Close has returned
	Stalled   Kind = "stalled"   // a worker has got nothing done since Last
)

// Mode is how a lease shares its name with others.
type Mode string

// The modes.
const (
	Alone   Mode = ""
	Reader  Mode = "reader"
	Limited Mode = "limited"
)

// Event is one line of a history.
type Event struct {
	At     int64  `json:"at"` // of now
	Kind   Kind   `json:"kind"`
	Worker string `json:"worker,omitempty"`
	ID     string `json:"id,omitempty"` // of the call, and of the lease that it gets
	Name   string `json:"name,omitempty"`

	Try      bool   `json:"try,omitempty"`      // TryAcquire
	Deadline int64  `json:"deadline,omitempty"` // of the call's ctx
	Class    string `json:"class,omitempty"`    // what a call came to
	Error    string `json:"error,omitempty"`
	Mode     Mode   `json:"mode,omitempty"`
	Complete bool   `json:"complete,omitempty"` // the release is to leave a dedup marker
	Fence    uint64 `json:"fence,omitempty"`
	Last     int64  `json:"last,omitempty"`
	Until    int64  `json:"until,omitempty"`   // what the lease then said about its end
	Keep     int64  `json:"keep,omitempty"`    // of WithMinHold; of a release: it is a Detach, for so long
	Handoff  string `json:"handoff,omitempty"` // the call has that of this lease

	Fenced bool   `json:"fenced,omitempty"` // the fenced store accepted the write
	Fault  string `json:"fault,omitempty"`
	Count  int    `json:"count,omitempty"`
	Base   int    `json:"base,omitempty"`
}

// now is the machine's monotonic clock in nanoseconds: the same in every process.
func now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail with this clock
	return t.Nano()
}

func seconds(d int64) float64 { return time.Duration(d).Seconds() }

// diary writes a history. Nothing is buffered: what a killed process has done stays written.
type diary struct {
	mu   sync.Mutex // protects file
	file *os.File
}

func newDiary(dir, name string) (*diary, error) {
	f, err := os.OpenFile(filepath.Join(dir, name+".jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // G304: the run's own directory
	return &diary{file: f}, err
}

// idle is when somebody could have written after those who are writing.
func (d *diary) idle() (at int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return now()
}

func (d *diary) write(e Event) {
	if e.At == 0 {
		e.At = now()
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // the type has nothing that cannot be encoded
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.file.Write(append(line, '\n')); err != nil {
		panic(err) // a history with a hole proves nothing
	}
}

// readHistories reads every history in dir, in the order of time.
func readHistories(dir string) ([]Event, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var all []Event
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // G304: as above
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(text) {
			var e Event
			if json.Unmarshal(line, &e) == nil { // else it is the last one of a process that was killed
				all = append(all, e)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return int(min(1, max(-1, a.At-b.At))) })
	return all, nil
}
