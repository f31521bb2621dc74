package drivertest

import (
	"testing"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// flapping is a connection that, once it is cut, is cut again each time its client sends something, for a while.
type flapping struct{ *Link }

func (f flapping) CutRequest(n int) {
	for i := range 30 {
		f.Link.CutRequest(n + i)
	}
}

func (f flapping) CutReply(n int) {
	f.CutRequest(n)
	f.Link.CutReply(n)
}

func TestAClientHasTimeToConnectAgain(t *testing.T) {
	t.Parallel()
	failed, _ := play(t, networkCases[0], func(testing.TB) Config {
		s := memlock.New()
		return Config{
			Driver: func() driver.Driver { return s },
			Through: func() (driver.Driver, []Wire) {
				l := NewLink(s)
				return l, []Wire{flapping{l}}
			},
		}
	})
	for _, why := range failed {
		t.Error(why)
	}
}
