package watchdog

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
)

// renews is a backend that only renews, the first claim of all once.
type renews struct {
	driver.Driver

	names    []string
	commands int
	bound    time.Duration // of the last command
}

func (*renews) Capabilities() driver.Capabilities { return driver.Capabilities{Punctual: true} }

func (d *renews) Renew(ctx context.Context, claims []driver.Claim) []error {
	until, _ := ctx.Deadline()
	d.bound = time.Until(until)
	d.commands++
	errs := make([]error, len(claims))
	for i, c := range claims {
		if len(d.names) > 0 && c.Name == d.names[0] {
			errs[i] = driver.ErrCannotAnswer
		}
		d.names = append(d.names, c.Name)
	}
	return errs
}

// dog is what is watched, and its watchdog.
type dog struct {
	entry Entry
	dog   *Dog[*dog]
	looks int
	ends  bool // as it is looked at
	rest  chan []*dog
	name  string
	lasts time.Duration // how much longer than a second its renewal may take
	over  bool          // as its renewal is sent
	fails int
	heard int
}

func (d *dog) Entry() *Entry { return &d.entry }

func (d *dog) Look(now clock.Reading) bool {
	d.looks++
	if d.rest != nil {
		go func() { d.rest <- d.dog.AllAtRest() }()
		time.Sleep(time.Millisecond)
	}
	if d.ends {
		d.dog.Leave(d)
		d.dog.Leave(d) // who ends it does so, too; and it is set afterwards, as by the answer to a renewal that was under way
	}
	d.dog.Set(d, now.Awake().Add(time.Second), 0)
	return d.name != ""
}

func (d *dog) Renewal(clock.Reading) (c driver.Claim, patience time.Duration, ok bool) {
	return driver.Claim{Name: d.name}, time.Second + d.lasts, !d.over
}
func (d *dog) Renewed(driver.Claim, clock.Reading, clock.Reading, error) { d.heard++ }
func (d *dog) Fails() int                                                { return d.fails }

// watching has a watchdog look at all, first of all after each of them, for so long.
func watching(t *testing.T, service driver.Driver, all []*dog, first, apart, lasts time.Duration, test func(d *Dog[*dog])) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		d := New[*dog](call.New(service, clock.New(), tasks.New()))
		for i, x := range all {
			x.dog = d
			d.Watch(x)
			d.Set(x, d.port.Clock.Now().Add(first+time.Duration(i)*apart), 0)
		}
		time.Sleep(lasts)
		synctest.Wait()
		test(d)
		d.Abandon()
	})
}

// What is being looked at is not in the heap, and may end then.
func TestWhatEndsAsItIsLookedAtIsLookedAtNoMore(t *testing.T) {
	t.Parallel()
	all := []*dog{{}, {}, {}, {ends: true}, {}, {}}
	watching(t, new(renews), all, time.Second/10, time.Second/10, 10*time.Second, func(d *Dog[*dog]) {
		for i, x := range all {
			if x.ends != (x.looks == 1) {
				t.Errorf("%d was looked at %d times", i, x.looks)
			}
		}
		if d.Count() != len(all)-1 {
			t.Errorf("%d are watched", d.Count())
		}
	})
}

func TestNobodyIsLookedAtLaterBecauseOfSomebodyElse(t *testing.T) {
	t.Parallel()
	first, second := &dog{rest: make(chan []*dog, 1)}, new(dog)
	watching(t, new(renews), []*dog{first, second}, time.Millisecond, 100*time.Millisecond, time.Millisecond, func(*Dog[*dog]) {
		if first.looks != 1 || second.looks != 0 {
			t.Errorf("looked at %d and %d times", first.looks, second.looks)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		select {
		case all := <-first.rest:
			if len(all) != 2 {
				t.Errorf("%d of two, once nothing is looked at", len(all))
			}
		default:
			t.Error("nothing is looked at any more, and it waits")
		}
	})
}

func TestWhatEndsBeforeItsRenewalIsSentIsNotRenewed(t *testing.T) {
	t.Parallel()
	service := new(renews)
	all := []*dog{
		{name: "one", lasts: time.Second}, {name: "over", over: true, lasts: -1}, {name: "two"}, {name: "three", lasts: time.Second}, {},
	}
	watching(t, service, all, time.Millisecond, 0, 1500*time.Millisecond, func(d *Dog[*dog]) {
		if fmt.Sprint(service.names) != "[one two three one two three]" || all[0].heard != 2 || all[1].heard != 0 || all[2].heard != 2 {
			t.Errorf("%v were renewed, and told %d, %d, %d times", service.names, all[0].heard, all[1].heard, all[2].heard)
		}
		if d.renewer.grown > 0 {
			t.Errorf("there was no answer to one of three, and the next command may have %d", d.renewer.grown)
		}
		if n := d.renewer.cut([]overdue[*dog]{{}, {}, {fails: 1}}); n != 2 {
			t.Errorf("%d of two and one that has failed are in one command", n)
		}
		if service.bound != time.Second {
			t.Errorf("all of them may take %s", service.bound)
		}
	})
}

// After an outage thousands are in doubt, and each command counts.
func TestThoseThatHaveFailedAsOftenShareACommand(t *testing.T) {
	t.Parallel()
	service := new(renews)
	var all []*dog
	for i := range 20 {
		all = append(all, &dog{name: fmt.Sprint(i), fails: i % 2})
	}
	watching(t, service, all, time.Millisecond, 0, time.Millisecond, func(d *Dog[*dog]) {
		if service.commands != 2 || len(service.names) != 20 {
			t.Errorf("%d commands for %d", service.commands, len(service.names))
		}
		d.renewer.grow(3, 4, true)
		d.renewer.grow(0, 1, false) // one that is silent now makes no command smaller for those that come back
		if d.renewer.grown != 8 {
			t.Errorf("the next command may have %d", d.renewer.grown)
		}
	})
}

// slow counts the commands that are under way.
type slow struct {
	driver.Driver
	under, most atomic.Int64
}

func (*slow) Capabilities() driver.Capabilities { return driver.Capabilities{} }

func (d *slow) Renew(_ context.Context, claims []driver.Claim) []error {
	d.most.Store(max(d.most.Load(), d.under.Add(1)))
	time.Sleep(10 * time.Millisecond)
	d.under.Add(-1)
	return make([]error, len(claims))
}

func TestFewCommandsAreUnderWayAtOnce(t *testing.T) {
	t.Parallel()
	service := new(slow)
	var all []*dog
	for i := range 3 * atOnce {
		all = append(all, &dog{name: fmt.Sprint(i), fails: i}) // each in a command of its own
	}
	watching(t, service, all, time.Millisecond, 0, 35*time.Millisecond, func(*Dog[*dog]) {
		if n := service.most.Load(); n < atOnce/2 || n > atOnce {
			t.Errorf("%d at once", n)
		}
	})
}
