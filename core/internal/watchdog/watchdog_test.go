package watchdog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
)

// idle can do nothing.
type idle struct{ driver.Driver }

func (idle) Capabilities() driver.Capabilities { return driver.Capabilities{} }

// dog is what is watched, and its watchdog.
type dog struct {
	entry Entry
	dog   *Dog[*dog]
	looks int
	ends  bool // as it is looked at
}

func (d *dog) Entry() *Entry { return &d.entry }

func (d *dog) Look(now clock.Reading) bool {
	if d.looks++; d.ends {
		d.dog.Leave(d)
		return false
	}
	d.dog.Set(d, now.Awake().Add(time.Second), 0)
	return false
}

func (*dog) Renewal(clock.Reading) (c driver.Claim, patience time.Duration, ok bool) {
	return c, 0, false
}
func (*dog) Renewed(driver.Claim, clock.Reading, clock.Reading, error) {}
func (*dog) Fails() int                                                { return 0 }

// What is being looked at is not in the heap, and may end then.
func TestWhatEndsAsItIsLookedAtIsLookedAtNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := New[*dog](call.New(idle{}, clock.New(), tasks.New()))
		var all []*dog
		for i := range 9 {
			x := &dog{dog: d, ends: i == 4}
			d.Watch(x)
			d.Set(x, d.port.Clock.Now().Add(time.Duration(i+1)*time.Second/10), 0)
			all = append(all, x)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for i, x := range all {
			if x.ends != (x.looks == 1) {
				t.Errorf("%d was looked at %d times", i, x.looks)
			}
		}
		if d.Count() != 8 {
			t.Errorf("%d are watched", d.Count())
		}
		d.Abandon()
	})
}
