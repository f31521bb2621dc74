package main

import (
	"context"
	"errors"
	"time"
)

// A process can stop anywhere, for any time: a collection of garbage, a suspended machine,
// a full disk. No lock can prevent what it does when it wakes up; the resource can.
var lateWrite = pitfall{
	name: "the late write",
	lock: "A is paused between its last look at the lock and its write; B has it",

	byHand: func(ctx context.Context, l *lab) (string, bool, error) {
		var file store
		key := l.key("late")
		if err := l.rdb.SetNX(ctx, key, "A", time.Minute).Err(); err != nil {
			return "", false, err
		}
		owner, err := l.rdb.Get(ctx, key).Result() // A looks, as careful code does …
		if err != nil || owner != "A" {
			return "A does not write", false, err
		}
		l.runOut() // … and is paused
		if err := l.rdb.SetNX(ctx, key, "B", time.Minute).Err(); err != nil {
			return "", false, err
		}
		file.write("B's")
		file.write("A's")
		if file.text == "A's" {
			return "A's old write has replaced B's", true, nil
		}
		return "B's write stands", false, nil
	},

	holdfast: func(ctx context.Context, l *lab) (string, bool, error) {
		var file store
		a, b, err := l.overtaken(ctx, "late") // A is paused meanwhile
		if err != nil {
			return "", false, err
		}
		defer b.Release(ctx)
		if err := file.fenced(b.Fence(), "B's"); err != nil {
			return "", false, err
		}
		late := file.fenced(a.Fence(), "A's")
		if errors.Is(late, errOld) && file.text == "B's" {
			return "A's write is refused: its fence is smaller than B's", false, nil
		}
		return "A's old write has replaced B's", true, nil
	},
}

var errOld = errors.New("an older holder")

// store is what the lock is there for, such as a row of a table.
type store struct {
	fence uint64 // the largest that was seen
	text  string
}

func (s *store) write(text string) { s.text = text }

// fenced is, in SQL: UPDATE file SET text = $1, fence = $2 WHERE id = $3 AND fence <= $2.
func (s *store) fenced(fence uint64, text string) error {
	if fence < s.fence {
		return errOld
	}
	s.fence, s.text = fence, text
	return nil
}
