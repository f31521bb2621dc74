package zklock

import (
	"context"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Release implements driver.Driver. A deletion that fails is tried again, whether or not the caller has time for that.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	_, err := run(ctx, s, &s.left, func(t *call) (struct{}, error) { return struct{}{}, t.release(c) })
	return err
}

func (t *call) release(c driver.Claim) error {
	n, err := t.take(c.Name, digest(c.Token), true)
	if err != nil {
		return err
	}
	defer t.leave(n)
	if c.Handoff != "" && n.owned {
		return t.detach(n, c)
	}
	owns := !n.waits
	there, err := t.remove(n)
	switch {
	case err != nil:
		t.set(n.retry)
		return err
	case !there || !owns:
		return driver.ErrNotOwner
	default:
		return nil
	}
}
