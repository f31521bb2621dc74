package sweep

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// swept runs f beside a Sweeper in virtual time, and fails unless the Sweeper's goroutine ends.
func swept(t *testing.T, f func(s *Sweeper)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		var wg sync.WaitGroup
		f(New(wg.Go))
		time.Sleep(4 * time.Hour)
		wg.Wait()
	})
}

// later lets time pass, and whatever that wakes.
func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// counts are of clean-ups.
type counts struct {
	n     int
	last  time.Duration // since it began
	pause time.Duration // the longest between two
}

// tally counts.
type tally struct {
	mu sync.Mutex // protects the fields below
	counts
}

func (c *tally) seen() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// task is one whose clean-ups c counts, and that come to what comes says.
func (c *tally) task(d time.Duration, comes func(within time.Duration) Outcome) Task {
	began := time.Now()
	return Task{For: d, Clean: func(within time.Duration) Outcome {
		c.mu.Lock()
		at := time.Since(began)
		c.counts = counts{c.n + 1, at, max(c.pause, at-c.last)}
		c.mu.Unlock()
		return comes(within)
	}}
}

// What a clean-up comes to.
func answered(time.Duration) Outcome      { return Answered }
func refused(time.Duration) Outcome       { return Silent }
func silent(within time.Duration) Outcome { time.Sleep(within); return Silent }

func TestCleanUpIsRepeatedForItsTimeSoonAndThenLessOften(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var c tally
		s.Add(c.task(10*time.Second, answered))
		later(time.Second / 10)
		if c.seen().n < 3 {
			t.Errorf("%d in the first 100 ms", c.seen().n)
		}
		later(time.Hour)
		if c.seen().last < 10*time.Second || c.seen().last > 11*time.Second || c.seen().pause >= time.Second || c.seen().n > 30 {
			t.Errorf("%d for %s, up to %s apart", c.seen().n, c.seen().last, c.seen().pause)
		}
	})
}

// What is sent at the last moment may be executed then, so the last clean-up of each comes after its time, however many are due at once.
func TestTheLastCleanUpComesAfterItsTime(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		all := make([]tally, 2*mostRound)
		for i := range all {
			s.Add(all[i].task(10*time.Second, answered))
		}
		later(time.Hour)
		for i := range all {
			if last := all[i].seen().last; last < 10*time.Second || last > 12*time.Second {
				t.Errorf("%d: the last one after %s", i, last)
			}
		}
	})
}

func TestWhileThereIsNoAnswerItGoesOnForThreeTimesAsLong(t *testing.T) {
	t.Parallel()
	for comes, want := range map[time.Duration]time.Duration{15 * time.Second: 15 * time.Second, time.Hour: 30 * time.Second} {
		swept(t, func(s *Sweeper) {
			var c tally
			began := time.Now()
			s.Add(c.task(10*time.Second, func(within time.Duration) Outcome {
				if time.Since(began) < comes {
					return silent(within)
				}
				return Answered
			}))
			later(time.Hour)
			if c.seen().last < want-time.Second || c.seen().last > want+time.Second || c.seen().pause > time.Second {
				t.Errorf("it ended after %s, not %s, up to %s apart", c.seen().last, want, c.seen().pause)
			}
		})
	}
}

func TestACleanUpThatIsLostIsRepeatedHoweverSoonItsTimeIsOver(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var c tally
		lost := silent
		s.Add(c.task(time.Millisecond, func(within time.Duration) Outcome {
			comes := lost
			lost = answered
			return comes(within)
		}))
		later(time.Hour)
		if c.seen().n != 2 {
			t.Errorf("%d were sent", c.seen().n)
		}
	})
}

func TestWhatIsNewDoesNotWaitForWhatIsDueLater(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var c tally
		var rounds atomic.Int32
		due := Task{After: time.Hour, For: time.Hour + time.Second, Clean: answered, Open: func() bool { rounds.Add(1); return true }}
		s.Add(due)
		later(time.Second)
		s.Add(c.task(0, answered))
		s.Add(due)
		later(time.Second)
		if c.seen().n == 0 || rounds.Load() > 2 {
			t.Errorf("asked %d times, and looked %d times at two that are not due", c.seen().n, rounds.Load())
		}
	})
}

func TestACloseEndsItSoon(t *testing.T) {
	t.Parallel()
	for what, comes := range map[string]func(time.Duration) Outcome{"answered": answered, "refused": refused} {
		swept(t, func(s *Sweeper) {
			var c, short tally
			task := c.task(time.Hour, comes)
			s.Add(task)
			later(time.Minute)
			before := c.seen().n
			s.Close()
			s.Add(task)
			later(time.Hour)
			if c.seen().n < before+2 || c.seen().last < time.Minute+AtClose/2 || c.seen().last > time.Minute+2*AtClose {
				t.Errorf("%s: %d more, the last after %s", what, c.seen().n-before, c.seen().last-time.Minute)
			}
			s.Add(short.task(First, comes))
			later(time.Hour)
			if short.seen().last > AtClose/2 {
				t.Errorf("%s: what would end sooner goes on for %s", what, short.seen().last)
			}
		})
	}
}

func TestACloseLeavesNobodyOutAndAnOutageIsRememberedWithinABound(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		all := make([]tally, 2*most)
		for i := range all {
			task := all[i].task(time.Hour, answered)
			task.After = time.Hour
			s.Add(task)
		}
		s.Close()
		later(AtClose)
		n := 0
		for i := range all {
			n += min(all[i].seen().n, 1)
		}
		if n != most {
			t.Errorf("%d were asked", n)
		}
	})
}

// In a Cluster one node of three is silent, or refuses at once, and calls go on. What the others have granted late is to be given back
// soon all the same; also where there is one processor, and the first of a round has ended before the second begins.
func TestWhatAnswersIsNotStarvedByWhatDoesNot(t *testing.T) { //nolint:paralleltest // others want more than one processor
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for what, dead := range map[string]func(time.Duration) Outcome{"silent": silent, "refused": refused} {
		swept(t, func(s *Sweeper) {
			var c tally
			for i := range 300 { // 15 s
				s.Add(Task{For: 10 * time.Second, Clean: dead})
				if i >= 100 {
					s.Add(c.task(10*time.Second, answered))
				}
				later(50 * time.Millisecond)
			}
			if c.seen().n < 200 {
				t.Errorf("%s: a node that answers was asked %d times for 200 grants", what, c.seen().n)
			}
		})
	}
}

func TestWhatIsSilentIsAskedBesideMoreThanThereIsTimeFor(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var c tally
		s.Add(c.task(time.Minute, silent))
		for range 100 { // 5 s, at twice of what is asked
			for range 50 {
				s.Add(Task{For: time.Second, Clean: answered})
			}
			later(50 * time.Millisecond)
		}
		if c.seen().n < 2 {
			t.Errorf("it was asked %d times", c.seen().n)
		}
	})
}

// A Locker that closes waits for 250 ms, and for what is under way; not for thousands of clean-ups.
func TestACloseEndsARoundThatIsLong(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var c tally
		for range most {
			s.Add(c.task(10*time.Second, func(time.Duration) Outcome { time.Sleep(5 * time.Millisecond); return Answered }))
		}
		later(time.Millisecond)
		s.Close()
		later(time.Hour)
		if c.seen().last > 4*AtClose {
			t.Errorf("it went on for %s", c.seen().last)
		}
	})
}

func TestWhatIsRefusedAtOnceIsAskedSeldom(t *testing.T) {
	t.Parallel()
	for tasks, most := range map[int]int{1: 100, 1000: 2000} {
		swept(t, func(s *Sweeper) {
			var c tally
			for range tasks {
				s.Add(c.task(10*time.Second, refused))
				later(10 * time.Millisecond)
			}
			later(time.Hour)
			if c.seen().n < tasks || c.seen().n > most {
				t.Errorf("%d commands for %d", c.seen().n, tasks)
			}
		})
	}
}
