package memcachedlock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Store is a lock service on memcached. It implements driver.Driver; see [New].
type Store struct {
	mc     *memcache.Client
	prefix string
}

var _ driver.Driver = (*Store)(nil)

// Option configures a [Store].
type Option interface{ apply(*Store) }

type optionFunc func(*Store)

func (f optionFunc) apply(s *Store) { f(s) }

// WithPrefix sets the beginning of all keys, at most 50 bytes without spaces and control characters.
// The default is "holdfast:". If it is given twice, the last one wins.
func WithPrefix(prefix string) Option {
	return optionFunc(func(s *Store) { s.prefix = prefix })
}

// New returns a Store that sends its commands through mc. The caller still configures and closes mc.
// New does no I/O. core.New reports what cannot work: a nil client, or an impossible prefix.
func New(mc *memcache.Client, opts ...Option) *Store {
	s := &Store{mc: mc, prefix: "holdfast:"}
	for _, o := range opts {
		o.apply(s)
	}
	return s
}

// memcached's keys have at most 250 bytes; core's names have at most 200.
const (
	maxName   = 200
	maxPrefix = 250 - maxName
)

// Capabilities implements driver.Driver.
func (s *Store) Capabilities() driver.Capabilities {
	return driver.Capabilities{Backend: "memcached", Err: s.invalid(), MinTTL: minTTL, MaxName: maxName}
}

// invalid says what is wrong with the arguments of New.
func (s *Store) invalid() error {
	if s.mc == nil {
		return errors.New("memcachedlock: nil client")
	}
	if len(s.prefix) > maxPrefix {
		return fmt.Errorf("memcachedlock: WithPrefix: %d bytes, more than %d", len(s.prefix), maxPrefix)
	}
	for i := range len(s.prefix) {
		if b := s.prefix[i]; b <= ' ' || b == 0x7f {
			return fmt.Errorf("memcachedlock: WithPrefix(%q): spaces and control characters are not allowed", s.prefix)
		}
	}
	return nil
}

// Acquire implements driver.Driver.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	item, err := s.item(c)
	if err != nil {
		return driver.Grant{}, err
	}
	for range maxRounds {
		if err := driver.NotSent(ctx.Err()); err != nil {
			return driver.Grant{}, err
		}
		err := s.mc.Add(item)
		if err == nil {
			return driver.Grant{}, nil
		}
		if !errors.Is(err, memcache.ErrNotStored) {
			return driver.Grant{}, classify(err)
		}
		// Somebody has it. If that is us, because a reply was lost, its time begins again.
		if err = s.swap(ctx, c, nil, item); !errors.Is(err, memcache.ErrCacheMiss) {
			return driver.Grant{}, err
		}
	}
	return driver.Grant{}, &driver.Held{} // by one after the other
}

// Wait implements driver.Driver. memcached tells nobody.
func (s *Store) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return driver.Poll(ctx, c, s.Acquire)
}

// Renew implements driver.Driver. The items of all claims are read with one command for each server.
func (s *Store) Renew(ctx context.Context, claims []driver.Claim) []error {
	if err := driver.NotSent(ctx.Err()); err != nil {
		return slices.Repeat([]error{err}, len(claims))
	}
	errs := make([]error, len(claims))
	keys := make([]string, len(claims))
	for i, c := range claims {
		keys[i] = s.key(c.Name)
	}
	items, err := s.mc.GetMulti(keys)
	for i, c := range claims {
		item := items[keys[i]]
		if item == nil && err != nil { // its server may be the one that did not answer
			errs[i] = classify(err)
			continue
		}
		errs[i] = s.renew(ctx, c, item)
	}
	return errs
}

// renew renews one claim, whose item was just read: nil if there is none.
func (s *Store) renew(ctx context.Context, c driver.Claim, item *memcache.Item) error {
	if item == nil {
		return driver.ErrNotOwner
	}
	if c.TTL == 0 {
		return answer(owned(item, c))
	}
	next, err := s.item(c)
	if err != nil {
		return err
	}
	return answer(s.swap(ctx, c, item, next))
}

// Release implements driver.Driver.
func (s *Store) Release(ctx context.Context, c driver.Claim) error {
	return answer(s.swap(ctx, c, nil, s.tombstone(c)))
}

// maxRounds is how often a call begins again because somebody else was quicker.
const maxRounds = 3

var errRaced = errors.New("memcachedlock: the item changes all the time")

// swap puts next in the place of c's item, if c's token owns it. The item as it was read
// may be given. If there is none, the error is memcache.ErrCacheMiss; if it is somebody
// else's, a *driver.Held.
func (s *Store) swap(ctx context.Context, c driver.Claim, item, next *memcache.Item) error {
	for range maxRounds {
		if err := driver.NotSent(ctx.Err()); err != nil {
			return err
		}
		if item == nil {
			var err error
			if item, err = s.mc.Get(next.Key); err != nil {
				return classify(err)
			}
		}
		if err := owned(item, c); err != nil {
			return err
		}
		if err := driver.NotSent(ctx.Err()); err != nil {
			return err
		}
		swapped := *next
		swapped.CasID = item.CasID
		switch err := s.mc.CompareAndSwap(&swapped); {
		case errors.Is(err, memcache.ErrCASConflict), errors.Is(err, memcache.ErrCacheMiss), errors.Is(err, memcache.ErrNotStored):
			item = nil // another command of ours, or the item is gone: look again
		default:
			return classify(err)
		}
	}
	return errRaced
}

// answer is what the error of swap says about ownership.
func answer(err error) error {
	_, held := errors.AsType[*driver.Held](err)
	if held || errors.Is(err, memcache.ErrCacheMiss) {
		return driver.ErrNotOwner
	}
	return err
}
