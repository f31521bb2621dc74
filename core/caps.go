package core

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
