package redislock

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

func TestSlotsAreThoseOfTheClusterSpecification(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{ // from redis-server's CLUSTER KEYSLOT
		"123456789": 12739, "": 0, "foo": 12182, "holdfast:order:42": 13308, "ü": 9552,
	} {
		if got := slot(key); got != want {
			t.Errorf("slot of %q: %d, not %d", key, got, want)
		}
	}
}

func TestInClusterTheFenceCounterIsInTheSlotOfTheName(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer func() { _ = rdb.Close() }()
	for _, prefix := range []string{"holdfast:", ""} {
		l := newLayout(rdb, &base{prefix: prefix})
		for _, name := range []string{"a", "order:42", "ü", "x:y:z"} {
			key := l.fence(name)
			tag := key[1 : len(key)-len("}:v1:fence")]
			if slot(tag) != slot(prefix+name) || key[0] != '{' || len(tag) < len(prefix) || tag[:len(prefix)] != prefix {
				t.Errorf("counter %q for %q", key, name)
			}
		}
	}
}

// A name that a plain client locks before it knows that the server checks slots has the same counter
// afterwards.
func TestTheSlotOfTheSingleCounterKeepsIt(t *testing.T) {
	t.Parallel()
	plain := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { _ = plain.Close() }()
	for _, prefix := range []string{"holdfast:", ""} {
		l, bySlot := newLayout(plain, &base{prefix: prefix}), newLayout(plain, &base{prefix: prefix, slots: true})
		single := map[string]int{"holdfast:": slot("holdfast:"), "": slot("{}:v1:fence")}[prefix] // empty braces are none
		at := make(map[string]bool)
		for i := range 200_000 {
			name := strconv.Itoa(i)
			if slot(prefix+name) == single {
				at[bySlot.fence(name)] = true
				if l.fence(name) != bySlot.fence(name) {
					t.Errorf("counters %q and %q for %q", l.fence(name), bySlot.fence(name), name)
				}
			} else if i < 1000 && bySlot.fence(name) == l.fence(name) {
				t.Errorf("counter %q for %q, which is in another slot", l.fence(name), name)
			}
		}
		if len(at) != 1 {
			t.Errorf("counters of the slot: %v", at)
		}
	}
}

func TestNoTextOfAClientsOwnChangesTheLayout(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"CROSSSLOT Keys in request don't hash to the same slot":                                          true,
		"ERR eval/evalsha command keys must be in same slot":                                             true,
		"ERR 'EVALSHA' command keys must in same slot":                                                   true,
		"ERR unknown command 'x', with args beginning with: 'evalsha command keys must be in same slot'": false,
		"WRONGTYPE CROSSSLOT": false,
		"READONLY You can't write against a read only replica. keys must be in same slot": false,
	} {
		if got := refusedForSlots(driver.NotSent(failure(text))); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
	if refusedForSlots(errors.New("CROSSSLOT")) {
		t.Error("a text of the client's")
	}
}

// Commands wait for a round trip while another one finds out that slots are checked. In one command, those made before
// and those made after that have keys in several slots.
func TestCommandsOfTwoLayoutsAreNotMerged(t *testing.T) {
	t.Parallel()
	plain := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { _ = plain.Close() }()
	s := New(plain)
	inFirst := ""
	for i := 0; slot("holdfast:"+inFirst) != 0; i++ {
		inFirst = strconv.Itoa(i)
	}
	batch := []*parcel{{cmd: s.merged(releases, driver.Claim{Name: "other"})}}
	s.layout.slots.Store(true)
	batch = append(batch, &parcel{cmd: s.merged(releases, driver.Claim{Name: inFirst})})
	if loads := s.share.stow(batch); len(loads) != 2 {
		t.Errorf("%d commands", len(loads))
	}
}

func TestBySlotsOnlyNamesOfOneSlotAreMerged(t *testing.T) {
	t.Parallel()
	plain := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { _ = plain.Close() }()
	s := New(plain, WithSlots())
	var batch []*parcel
	want := make(map[int]int)
	for i := range 3 * slots {
		name := strconv.Itoa(i)
		if at := slot("holdfast:" + name); at < 3 {
			want[at]++
			batch = append(batch, &parcel{cmd: s.merged(releases, driver.Claim{Name: name})})
		}
	}
	loads := s.share.stow(batch)
	for _, l := range loads {
		for key := range l.cmd.keys {
			text := l.cmd.parts[key]
			if _, rest, side := strings.Cut(text, "{"); side {
				text, _, _ = strings.Cut(rest, "}")
			}
			if slot(text) != l.parcels[0].cmd.group {
				t.Errorf("key %q in a command for slot %d", l.cmd.parts[key], l.parcels[0].cmd.group)
			}
		}
	}
	if len(loads) != len(want) || len(batch) < 5 {
		t.Errorf("%d commands for %d slots and %d names", len(loads), len(want), len(batch))
	}
}
