package fallback

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// table knows who of this process has a name: by the service's word, or without it.
type table struct {
	mu      sync.Mutex // protects everything in it
	names   map[string]*name
	sweepAt int // the number of names at which those that nobody has are thrown out
}

// name is who has one name. There is one degraded lease, or holders.
type name struct {
	local, label string        // of the degraded lease
	holders      []holder      // by the service's word
	changed      chan struct{} // closed when somebody leaves, or is over; nil if nobody waits
}

// holder is one who has a name until then, unless he prolongs it. Without a token he is not of this process.
type holder struct {
	token, label string
	until        time.Time
}

// standing is who of this process has a name, for somebody who wants it.
type standing struct {
	held    driver.Held
	changed <-chan struct{}
	until   time.Time // of the first whose time ends; zero if that is never
}

// over waits until it may be different. It is false if ctx has ended before that.
func (s *standing) over(ctx context.Context) bool {
	var timer <-chan time.Time
	if !s.until.IsZero() {
		t := time.NewTimer(time.Until(s.until))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-s.changed:
		return true
	case <-timer:
		return true
	case <-ctx.Done():
		return false
	}
}

func newTable() *table { return &table{names: make(map[string]*name), sweepAt: minSweep} }

const minSweep = 1024

// open returns what there is of a name. The caller has the mutex, as for all that follow without a verb of their own.
func (t *table) open(of string) *name {
	n := t.names[of]
	if n == nil {
		if len(t.names) >= t.sweepAt {
			for other, n := range t.names {
				n.tidy(time.Now())
				t.shut(other, n)
			}
			t.sweepAt = max(minSweep, 2*len(t.names))
		}
		n = new(name)
		t.names[of] = n
	}
	n.tidy(time.Now())
	return n
}

func (t *table) shut(of string, n *name) {
	if n.local == "" && len(n.holders) == 0 && n.changed == nil {
		delete(t.names, of)
	}
}

func (n *name) tidy(now time.Time) {
	there := len(n.holders)
	n.holders = slices.DeleteFunc(n.holders, func(h holder) bool { return !now.Before(h.until) })
	if len(n.holders) < there {
		n.stir()
	}
}

// drop takes a token out.
func (n *name) drop(token string) {
	n.holders = slices.DeleteFunc(n.holders, func(h holder) bool { return h.token == token })
}

// put says that token has the name until then.
func (n *name) put(h holder) {
	n.drop(h.token)
	n.holders = append(n.holders, h)
}

func (n *name) stir() {
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

func (n *name) standing(label string) *standing {
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return &standing{held: driver.Held{Label: label}, changed: n.changed}
}

// degraded says who has a degraded lease of a name; nil if nobody has.
func (t *table) degraded(of string) *standing {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.names[of]
	if n == nil || n.local == "" {
		return nil
	}
	return n.standing(n.label)
}

// local makes a degraded lease for c, with a token of its own; unless the name is held. Then it says by whom of this process; nil
// if by others.
func (t *table) local(c driver.Claim) (token string, here *standing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.open(c.Name) // which has somebody in any case as this returns
	if n.local != "" {
		return "", n.standing(n.label)
	}
	n.drop(c.Token) // whatever the service has given it: core does not know of it
	if len(n.holders) == 0 {
		n.local, n.label = newToken(), c.Label
		return n.local, nil
	}
	h := n.holders[0]
	if h.token == "" {
		return "", nil
	}
	here = n.standing(h.label)
	here.until = h.until
	return "", here
}

// enter says that the service has given the name to c just now, or a little earlier. It is false if there is a degraded lease: then nobody may
// use the grant.
func (t *table) enter(c driver.Claim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.open(c.Name)
	if n.local != "" {
		return false
	}
	n.drop("")
	n.put(holder{c.Token, c.Label, time.Now().Add(c.TTL)})
	return true
}

// told says that the service has called the name of c held. If it is not by this process, somebody else may be at work.
func (t *table) told(c driver.Claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.open(c.Name)
	until := time.Now().Add(c.TTL)
	if n.local == "" && (len(n.holders) == 0 || n.holders[0].token == "" && n.holders[0].until.Before(until)) {
		n.put(holder{until: until})
	}
	t.shut(c.Name, n)
}

// prolong says that the service has renewed c.
func (t *table) prolong(c driver.Claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.names[c.Name]; n != nil {
		for i := range n.holders {
			if h := &n.holders[i]; h.token == c.Token {
				h.until = time.Now().Add(c.TTL)
			}
		}
	}
}

// lost says that the service has called c another one's, or nobody's.
func (t *table) lost(c driver.Claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.names[c.Name]; n != nil {
		n.drop(c.Token)
		n.stir()
		t.shut(c.Name, n)
	}
}

// leave says that c is about to be released. A degraded lease ends by that; known says whether there was one of that token.
func (t *table) leave(c driver.Claim) (known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.names[c.Name]
	if n == nil {
		return false
	}
	if known = n.local == c.Token; known {
		n.local, n.label = "", ""
	}
	n.drop(c.Token)
	if c.Keep > 0 && !known {
		n.put(holder{until: time.Now().Add(c.Keep)})
	}
	n.stir()
	t.shut(c.Name, n)
	return known
}

// has says whether c is a degraded lease.
func (t *table) has(c driver.Claim) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.names[c.Name]
	return n != nil && n.local == c.Token
}

// own is how the token of a degraded lease begins. No token of core does.
const own = "~"

func newToken() string { return own + rand.Text() }

func isOwn(token string) bool { return strings.HasPrefix(token, own) }
