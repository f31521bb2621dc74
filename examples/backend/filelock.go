//go:build unix

// Package filelock is a complete backend, to show how little one needs: locks of the processes of one machine, in the files of a
// folder. It has a queue and fences, and passes the suite of package drivertest.
//
//	locks, err := core.New(filelock.New("/run/myservice/locks"))
//
// Each name has a file, which is there as long as somebody owns the name or waits for it. Whoever reads or changes one holds the
// lock of the folder meanwhile, so that each operation is one step. Times are of the machine's monotonic clock, which no one can
// set. It begins anew when the machine does, so the folder must be one that is empty then, as those in /run are.
package filelock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/core/driver"
)

// pace is how often a waiter looks.
const pace = 10 * time.Millisecond

// Folder is a driver.Driver.
type Folder struct{ path string }

var _ driver.Driver = (*Folder)(nil)

// New returns the backend in a folder, which has to be there.
func New(path string) *Folder { return &Folder{path} }

// Capabilities implements driver.Driver. The zero values say what it cannot do: shared and limited locks, dedup, MinHold and
// hand-offs. core refuses these itself.
func (f *Folder) Capabilities() driver.Capabilities {
	return driver.Capabilities{Backend: "files", Location: f.path, Queue: true, Fence: true}
}

// Acquire implements driver.Driver.
func (f *Folder) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	err = f.change(ctx, c.Name, func(r *record, s *step) error { return r.ask(c, s, &g) })
	return g, err
}

// Wait implements driver.Driver. It puts c into the queue, and asks from there as Acquire does.
func (f *Folder) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	var held *driver.Held
	for {
		var g driver.Grant
		asked := time.Now()
		err := f.change(ctx, c.Name, func(r *record, s *step) error {
			r.stand(c, s.now)
			return r.ask(c, s, &g)
		})
		g.Asked = asked
		refused, ok := errors.AsType[*driver.Held](err)
		switch {
		case ok:
			held = refused
			c.Tell(held)
		case held == nil: // a grant, or nothing has put c into the queue
			return g, err
		case ctx.Err() != nil && err != nil:
			return driver.Grant{}, held
		default: // c stands in the queue
			return g, driver.UnknownOutcome(err)
		}
		select {
		case <-time.After(pace):
		case <-ctx.Done():
			return driver.Grant{}, held
		}
	}
}

// Renew implements driver.Driver.
func (f *Folder) Renew(ctx context.Context, claims []driver.Claim) []error {
	errs := make([]error, len(claims))
	for i, c := range claims {
		errs[i] = f.change(ctx, c.Name, func(r *record, s *step) error {
			if r.Owner != c.Token {
				return driver.ErrNotOwner
			}
			if c.TTL > 0 { // else it is only verified
				r.Label, r.Until = c.Label, s.now+c.TTL
			}
			return nil
		})
	}
	return errs
}

// Release implements driver.Driver. The first of the queue finds the name free when it looks.
func (f *Folder) Release(ctx context.Context, c driver.Claim) error {
	return f.change(ctx, c.Name, func(r *record, _ *step) error {
		r.leave(c.Token)
		if r.Owner != c.Token {
			return driver.ErrNotOwner
		}
		r.Owner, r.Label, r.Until = "", "", 0
		return nil
	})
}

// record is what there is of a name. Times are of the monotonic clock.
type record struct {
	Owner string        `json:"owner,omitempty"` // a token
	Label string        `json:"label,omitempty"`
	Until time.Duration `json:"until,omitempty"`
	Queue []entry       `json:"queue,omitempty"`
}

type entry struct {
	Token string        `json:"token"`
	Until time.Duration `json:"until"`
}

// ask makes c the owner, or says why not.
func (r *record) ask(c driver.Claim, s *step, g *driver.Grant) error {
	switch {
	case r.Owner == c.Token:
	case r.Owner != "":
		return &driver.Held{Label: r.Label, Remaining: r.Until - s.now}
	case len(r.Queue) > 0 && r.Queue[0].Token != c.Token:
		return &driver.Held{}
	}
	r.leave(c.Token)
	r.Owner, r.Label, r.Until = c.Token, c.Label, s.now+c.TTL
	s.fence++
	g.Fence = s.fence
	return nil
}

// stand puts c at the end of the queue, or keeps it alive where it stands. Who owns the name is never queued.
func (r *record) stand(c driver.Claim, now time.Duration) {
	until := now + driver.PlaceLife(c.TTL)
	if i := slices.IndexFunc(r.Queue, func(e entry) bool { return e.Token == c.Token }); i >= 0 {
		r.Queue[i].Until = until
	} else if r.Owner != c.Token {
		r.Queue = append(r.Queue, entry{c.Token, until})
	}
}

func (r *record) leave(token string) {
	r.Queue = slices.DeleteFunc(r.Queue, func(e entry) bool { return e.Token == token })
}

// tidy drops what is over.
func (r *record) tidy(now time.Duration) {
	if now >= r.Until {
		r.Owner, r.Label, r.Until = "", "", 0
	}
	r.Queue = slices.DeleteFunc(r.Queue, func(e entry) bool { return now >= e.Until })
}

// step is what an operation needs to know beside the record.
type step struct {
	now   time.Duration
	fence uint64 // the last one minted, of all names
}

// change does something to a name in one step. An error that is not do's own means that nothing was done.
func (f *Folder) change(ctx context.Context, name string, do func(*record, *step) error) error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(f.path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return driver.NotSent(driver.Unavailable(err))
	}
	defer lock.Close() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return driver.NotSent(err)
	}
	sum := sha256.Sum256([]byte(name))
	path := filepath.Join(f.path, hex.EncodeToString(sum[:]))
	var r record
	s, err := f.read(lock, path, &r)
	if err != nil {
		return driver.NotSent(err)
	}
	r.tidy(s.now)
	fence := s.fence
	result := do(&r, &s)
	if fence != s.fence { // first, so that no fence is ever minted twice
		if _, err := lock.WriteAt(fmt.Appendf(nil, "%020d", s.fence), 0); err != nil {
			return driver.NotSent(err)
		}
	}
	if err := f.write(path, &r); err != nil {
		return driver.NotSent(err)
	}
	return result
}

// read reads a name's file, and the last fence, which stands in the lock file.
func (f *Folder) read(lock *os.File, path string, r *record) (s step, err error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return s, err
	}
	s.now = time.Duration(now.Nano())
	var digits [20]byte
	if n, _ := lock.ReadAt(digits[:], 0); n > 0 { // a new file is empty
		if _, err := fmt.Sscanf(string(digits[:n]), "%d", &s.fence); err != nil {
			return s, fmt.Errorf("the last fence: %w", err)
		}
	}
	text, err := os.ReadFile(path) //nolint:gosec // G304: a hash in the folder
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, r)
	}
	return s, err
}

// write replaces a name's file, or removes it if nothing is left. Tokens are secret, so nobody else may read it.
func (f *Folder) write(path string, r *record) error {
	if r.Owner == "" && len(r.Queue) == 0 {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
