package redislock

import (
	"errors"
	"regexp"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// layout is where things are that no name has for itself: fence counters and channels. There is one
// of each. But some servers refuse a command whose keys are in different slots. There, each slot has
// its own.
//
// A Cluster client means such a server. Other endpoints of clusters take plain clients. They show
// what they are when they refuse the first acquire. From then on, a Store keeps to slots.
//
// Fences never fall by that. A server that checks slots has refused all acquires but those of names
// that are in the slot of the single counter. So that slot keeps the single counter.
type layout struct {
	prefix string
	single string // the fence counter
	home   int    // its slot
	tags   slotTags
	slots  atomic.Bool
}

func newLayout(rdb redis.UniversalClient, prefix string) *layout {
	l := &layout{prefix: prefix, single: "{" + prefix + "}:v1:fence", tags: slotTags{prefix: prefix}}
	l.home = slot(prefix)
	if prefix == "" {
		l.home = slot(l.single) // empty braces are none
	}
	if _, ok := rdb.(*redis.ClusterClient); ok {
		l.slots.Store(true)
	}
	return l
}

// bySlot says whether each slot has its own.
func (l *layout) bySlot() bool { return l.slots.Load() }

func (l *layout) slotOf(name string) int { return slot(l.prefix + name) }

// fence is the counter for name.
func (l *layout) fence(name string) string {
	if !l.bySlot() {
		return l.single
	}
	at := l.slotOf(name)
	if at == l.home {
		return l.single
	}
	return "{" + l.tags.of(at) + "}:v1:fence"
}

// group is a number that names share if one command may have the keys of all of them.
func (l *layout) group(name string) int {
	if !l.bySlot() {
		return -1 // no slot: a command that was made before the layout changed is not merged with later ones
	}
	return l.slotOf(name)
}

// relaid says whether to make a call again, by slots, because it was refused for its keys. Nothing of
// it was executed.
func (s *Store) relaid(err error) bool {
	if err == nil || !refusedForSlots(err) {
		return false
	}
	if _, ok := s.rdb.(*redis.ClusterClient); ok {
		return false
	}
	if !s.layout.slots.Swap(true) {
		s.subscribers.single.close() // nobody is told there any more
	}
	return true
}

func refusedForSlots(err error) bool {
	if says(err, "CROSSSLOT") {
		return true
	}
	answer, ok := errors.AsType[redis.Error](err)
	return ok && sameSlot.MatchString(answer.Error())
}

// sameSlot is how proxies say it. It matches nothing that a client can choose, such as a name.
var sameSlot = regexp.MustCompile(`^ERR [a-zA-Z/' ]{0,40} keys must (be )?in (the )?same slot`)
