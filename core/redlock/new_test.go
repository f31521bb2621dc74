package redlock_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

func TestWhatCannotWorkIsRefusedByNew(t *testing.T) {
	t.Parallel()
	a, b, c := memlock.New(), memlock.New(), memlock.New()
	var none *memlock.Store
	for want, nodes := range map[string][]driver.Driver{
		"0 nodes":                   nil,
		"1 nodes":                   {a},
		"2 nodes":                   {a, b},
		"node 2 is nil":             {a, b, nil},
		"node 1 is nil":             {a, none, c},
		"nodes 0 and 2 are the":     {a, b, a},
		"node 1: redlock: 2 nodes:": {a, redlock.New([]driver.Driver{b, c}), c},
	} {
		_, err := core.New(redlock.New(nodes))
		is(t, err, core.ErrInvalid)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	for n := 3; n < 8; n++ {
		_, err := core.New(redlock.New(memory(n)))
		ok(t, err)
	}
	uncomparable := []driver.Driver{odd{Store: a, x: []int{1}}, odd{Store: b}, odd{Store: c}}
	_, err := core.New(redlock.New(uncomparable))
	ok(t, err)
}

type odd struct {
	*memlock.Store
	x []int
}

func TestOnlyNodesThatCountFromAFloorHaveFences(t *testing.T) {
	t.Parallel()
	tx := redislock.NewTx(dial(t, "127.0.0.1:1"))
	_, err := core.New(redlock.New([]driver.Driver{redislock.New(dial(t, "127.0.0.1:1")), redislock.New(dial(t, "127.0.0.1:1")), tx}, redlock.WithFence()))
	is(t, err, core.ErrInvalid)
}
