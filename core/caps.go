package core

import "fmt"

const (
	defaultMaxLeases  = 1_000_000
	defaultMaxWaiters = 100_000
)

// WithMaxLeases bounds how many leases the process holds at once, with all Lockers that are
// derived from this one. Who asks for one more gets [ErrUnavailable] at once, without a command:
// the doors answer 503, Unavailable, and a retry. A re-entry, which has its lease already, does
// not count. Those who ask at the same moment can go over it by as many as they are.
//
// The default is a million, about 600 MB; n below 1 is [ErrInvalid]. The last one wins.
func WithMaxLeases(n int) NewOption {
	return capped("WithMaxLeases", n, func(c *config) { c.maxLeases = n })
}

// WithMaxWaiters bounds how many calls of the process may wait at once, for whatever names: one
// more gets [ErrUnavailable] at once, without a command. Calls that try once do not count.
//
// The default is 100,000; n below 1 is [ErrInvalid]. The last one wins.
func WithMaxWaiters(n int) NewOption {
	return capped("WithMaxWaiters", n, func(c *config) { c.maxWaiters = n })
}

func capped(option string, n int, set func(*config)) NewOption {
	return newOptionFunc(func(c *config) {
		if n < 1 {
			c.check(invalidf("%s(%d): below 1", option, n))
		}
		set(c)
	})
}

// overCap is the refusal of what would be more than the process keeps: a flood of names, or of
// callers for one that is stuck, ends in errors and not with the memory.
func (a *acquisition) overCap(option string, n int) error {
	return &unavailableError{"acquire", a.name, fmt.Errorf("not asked: %s(%d) of this process is reached", option, n)}
}

// wait is queue for one of as many callers as may wait.
func (a *acquisition) wait() (*Lease, error) {
	r := a.engine
	defer r.waiters.Add(-1)
	if r.waiters.Add(1) > int64(r.maxWaiters) {
		return nil, a.overCap("WithMaxWaiters", r.maxWaiters)
	}
	return a.queue()
}
