package sweep

import (
	"runtime"
	"sync"
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

// tally counts clean-ups. What it has is read after later.
type tally struct {
	mu    sync.Mutex // protects the fields below
	n     int
	began time.Time
	last  time.Duration // since it began
	pause time.Duration // the longest between two
}

// task is one whose clean-ups c counts, and that come to what comes says.
func (c *tally) task(d time.Duration, comes func(within time.Duration) Outcome) Task {
	c.began = time.Now()
	return Task{For: d, Clean: func(within time.Duration) Outcome {
		c.mu.Lock()
		at := time.Since(c.began)
		c.n, c.last, c.pause = c.n+1, at, max(c.pause, at-c.last)
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
		if c.n < 3 {
			t.Errorf("%d in the first 100 ms", c.n)
		}
		later(time.Hour)
		if c.last < 10*time.Second || c.last > 11*time.Second || c.pause >= time.Second || c.n > 30 {
			t.Errorf("%d for %s, up to %s apart", c.n, c.last, c.pause)
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
			if last := all[i].last; last < 10*time.Second || last > 12*time.Second {
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
			s.Add(c.task(10*time.Second, func(within time.Duration) Outcome {
				if time.Since(c.began) < comes {
					return silent(within)
				}
				return Answered
			}))
			later(time.Hour)
			if c.last < want-time.Second || c.last > want+time.Second || c.pause > time.Second {
				t.Errorf("it ended after %s, not %s, up to %s apart", c.last, want, c.pause)
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
		if c.n != 2 {
			t.Errorf("%d were sent", c.n)
		}
	})
}

func TestWhatIsNewDoesNotWaitForWhatIsDueLater(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var c tally
		rounds := 0
		due := Task{After: time.Hour, For: time.Hour + time.Second, Clean: answered, Open: func() bool { rounds++; return true }}
		s.Add(due)
		later(time.Second)
		s.Add(c.task(0, answered))
		s.Add(due)
		later(time.Second)
		if c.n == 0 || rounds > 2 {
			t.Errorf("asked %d times, and looked %d times at two that are not due", c.n, rounds)
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
			before := c.n
			s.Close()
			s.Add(task)
			later(time.Hour)
			if c.n < before+2 || c.last < time.Minute+AtClose/2 || c.last > time.Minute+2*AtClose {
				t.Errorf("%s: %d more, the last after %s", what, c.n-before, c.last-time.Minute)
			}
			s.Add(short.task(First, comes))
			later(time.Hour)
			if short.last > AtClose/2 {
				t.Errorf("%s: what would end sooner goes on for %s", what, short.last)
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
		later(time.Hour)
		n := 0
		for i := range all {
			n += min(all[i].n, 1)
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
			if c.n < 200 {
				t.Errorf("%s: a node that answers was asked %d times for 200 grants", what, c.n)
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
		if c.n < 2 {
			t.Errorf("it was asked %d times", c.n)
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
		if c.last > 4*AtClose {
			t.Errorf("it went on for %s", c.last)
		}
	})
}

func TestWhatIsRefusedAtOnceIsAskedSeldom(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var c tally
		for range 1000 {
			s.Add(c.task(10*time.Second, refused))
			later(10 * time.Millisecond)
		}
		later(time.Hour)
		if c.n < 1000 || c.n > 2000 {
			t.Errorf("%d commands", c.n)
		}
	})
}
