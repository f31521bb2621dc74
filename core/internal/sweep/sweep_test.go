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
		wg.Wait()
	})
}

// later lets time pass, and whatever that wakes.
func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// tally counts clean-ups.
type tally struct {
	mu    sync.Mutex // protects the fields below
	n     int
	began time.Time
	last  time.Duration // since it began
	pause time.Duration // the longest between two
}

func (c *tally) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Since(c.began)
	c.n, c.last, c.pause = c.n+1, at, max(c.pause, at-c.last)
}

func (c *tally) take() (n int, last, pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n, c.last, c.pause
}

func TestCleanUpIsRepeatedForItsTimeSoonAndThenLessOften(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		c := &tally{began: time.Now()}
		s.Add(Task{For: 10 * time.Second, Clean: func(time.Duration) Outcome { c.add(); return Answered }})
		later(time.Second / 10)
		if n, _, _ := c.take(); n < 3 {
			t.Errorf("%d in the first 100 ms", n)
		}
		later(time.Hour)
		if n, last, pause := c.take(); last < 10*time.Second || last > 11*time.Second || pause >= time.Second || n > 30 {
			t.Errorf("%d for %s, up to %s apart", n, last, pause)
		}
	})
}

// What is sent at the last moment may be executed then, so the last clean-up of each comes after its time, however many are due at once.
func TestTheLastCleanUpComesAfterItsTime(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		all := make([]tally, 2*mostRound)
		for i := range all {
			c := &all[i]
			c.began = time.Now()
			s.Add(Task{For: 10 * time.Second, Clean: func(time.Duration) Outcome { c.add(); return Answered }})
		}
		later(time.Hour)
		for i := range all {
			if _, last, _ := all[i].take(); last < 10*time.Second || last > 12*time.Second {
				t.Errorf("%d: the last one after %s", i, last)
			}
		}
	})
}

func TestWhileThereIsNoAnswerItGoesOnForThreeTimesAsLong(t *testing.T) {
	t.Parallel()
	for answered, want := range map[time.Duration]time.Duration{15 * time.Second: 15 * time.Second, time.Hour: 30 * time.Second} {
		swept(t, func(s *Sweeper) {
			c := &tally{began: time.Now()}
			s.Add(Task{For: 10 * time.Second, Clean: func(time.Duration) Outcome {
				c.add()
				if time.Since(c.began) < answered {
					return Silent
				}
				return Answered
			}})
			later(time.Hour)
			if _, last, _ := c.take(); last < want-time.Second || last > want+time.Second {
				t.Errorf("it ended after %s, not %s", last, want)
			}
		})
	}
}

func TestWhatIsSilentIsAskedAgainWithinASecond(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		c := &tally{began: time.Now()}
		s.Add(Task{For: 20 * time.Second, Clean: func(within time.Duration) Outcome { c.add(); time.Sleep(within); return Silent }})
		later(time.Hour)
		if _, _, pause := c.take(); pause > time.Second {
			t.Errorf("%s apart", pause)
		}
	})
}

func TestACleanUpThatIsLostIsRepeatedHoweverSoonItsTimeIsOver(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var n atomic.Int32
		s.Add(Task{For: time.Millisecond, Clean: func(within time.Duration) Outcome {
			if n.Add(1) == 1 {
				time.Sleep(within)
				return Silent
			}
			return Answered
		}})
		later(time.Hour)
		if n.Load() != 2 {
			t.Errorf("%d were sent", n.Load())
		}
	})
}

func TestWhatIsNewDoesNotWaitForWhatIsDueLater(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var c tally
		var rounds atomic.Int32
		due := Task{After: time.Hour, For: time.Hour + time.Second, Clean: func(time.Duration) Outcome { return Answered }, Open: func() bool { rounds.Add(1); return true }}
		s.Add(due)
		later(time.Second)
		s.Add(Task{Clean: func(time.Duration) Outcome { c.add(); return Answered }})
		s.Add(due)
		later(time.Second)
		if n, _, _ := c.take(); n == 0 || rounds.Load() > 2 {
			t.Errorf("asked %d times, and looked %d times at two that are not due", n, rounds.Load())
		}
		later(4 * time.Hour)
	})
}

func TestAnOutcomeThatIsHeardEndsIt(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var open atomic.Bool
		open.Store(true)
		c := &tally{began: time.Now()}
		s.Add(Task{For: time.Hour, Open: open.Load, Clean: func(time.Duration) Outcome { c.add(); return Answered }})
		later(time.Second)
		open.Store(false)
		before, _, _ := c.take()
		later(time.Hour)
		if n, _, _ := c.take(); n > before+1 {
			t.Errorf("%d more", n-before)
		}
	})
}

func TestInAnOutageFewCommandsAreUnderWay(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var n, out, most atomic.Int32
		for range 1000 {
			s.Add(Task{For: 10 * time.Second, Clean: func(within time.Duration) Outcome {
				n.Add(1)
				if now := out.Add(1); now > most.Load() {
					most.Store(now)
				}
				time.Sleep(within)
				out.Add(-1)
				return Silent
			}})
		}
		later(10 * time.Second)
		if most.Load() > Many || n.Load() > 1000+10*Few {
			t.Errorf("%d commands, %d at once", n.Load(), most.Load())
		}
		s.Close()
		later(time.Hour)
	})
}

func TestACloseEndsItSoon(t *testing.T) {
	t.Parallel()
	for _, answers := range []Outcome{Answered, Silent} {
		swept(t, func(s *Sweeper) {
			c := &tally{began: time.Now()}
			task := Task{For: time.Hour, Clean: func(time.Duration) Outcome { c.add(); return answers }}
			s.Add(task)
			later(time.Minute)
			before, _, _ := c.take()
			s.Close()
			s.Add(task)
			later(time.Hour)
			if n, last, _ := c.take(); n < before+2 || last < time.Minute+AtClose/2 || last > time.Minute+2*AtClose {
				t.Errorf("answered %v: %d more, the last after %s", answers, n-before, last-time.Minute)
			}
			short := &tally{began: time.Now()}
			s.Add(Task{For: First, Clean: func(time.Duration) Outcome { short.add(); return answers }})
			later(time.Hour)
			if _, last, _ := short.take(); last > AtClose/2 {
				t.Errorf("answered %v: what would end sooner goes on for %s", answers, last)
			}
		})
	}
}

func TestACloseLeavesNobodyOut(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var asked atomic.Int32
		for range most {
			first := sync.OnceFunc(func() { asked.Add(1) })
			s.Add(Task{After: time.Hour, For: time.Hour, Clean: func(time.Duration) Outcome { first(); return Answered }})
		}
		s.Close()
		later(time.Hour)
		if n := int(asked.Load()); n != most {
			t.Errorf("%d were asked", n)
		}
	})
}

func TestAnOutageIsRememberedWithinABound(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		for range 2 * most {
			s.Add(Task{For: time.Second, Clean: func(time.Duration) Outcome { return Silent }})
		}
		s.mu.Lock()
		n := len(s.tasks)
		s.mu.Unlock()
		if n != most {
			t.Errorf("%d are remembered", n)
		}
		later(time.Hour)
	})
}

// In a Cluster one node of three is silent, or refuses at once, and calls go on. What the others have granted late is to be given back
// soon all the same; also where there is one processor, and the first of a round has ended before the second begins.
func TestWhatAnswersIsNotStarvedByWhatDoesNot(t *testing.T) { //nolint:paralleltest // others want more than one processor
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for what, dead := range map[string]func(time.Duration) Outcome{
		"silent":  func(within time.Duration) Outcome { time.Sleep(within); return Silent },
		"refused": func(time.Duration) Outcome { return Silent },
	} {
		swept(t, func(s *Sweeper) {
			var asked atomic.Int32
			for i := range 300 { // 15 s
				s.Add(Task{For: 10 * time.Second, Clean: dead})
				if i >= 100 {
					s.Add(Task{For: 10 * time.Second, Clean: func(time.Duration) Outcome { asked.Add(1); return Answered }})
				}
				later(50 * time.Millisecond)
			}
			if asked.Load() < 200 {
				t.Errorf("%s: a node that answers was asked %d times for 200 grants", what, asked.Load())
			}
			later(time.Hour)
		})
	}
}

func TestWhatIsSilentIsAskedBesideMoreThanThereIsTimeFor(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var asked atomic.Int32
		s.Add(Task{For: time.Minute, Clean: func(within time.Duration) Outcome { asked.Add(1); time.Sleep(within); return Silent }})
		for range 100 { // 5 s, at twice of what is asked
			for range 50 {
				s.Add(Task{For: time.Second, Clean: func(time.Duration) Outcome { return Answered }})
			}
			later(50 * time.Millisecond)
		}
		if n := asked.Load(); n < 2 {
			t.Errorf("it was asked %d times", n)
		}
		later(time.Hour)
	})
}

// A Locker that closes waits for 250 ms, and for what is under way; not for thousands of clean-ups.
func TestACloseEndsARoundThatIsLong(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		began := time.Now()
		var last atomic.Int64
		for range most {
			s.Add(Task{For: 10 * time.Second, Clean: func(time.Duration) Outcome {
				time.Sleep(5 * time.Millisecond)
				last.Store(int64(time.Since(began)))
				return Answered
			}})
		}
		later(time.Millisecond)
		s.Close()
		later(time.Hour)
		if d := time.Duration(last.Load()); d > 4*AtClose {
			t.Errorf("it went on for %s", d)
		}
	})
}

func TestWhatIsRefusedAtOnceIsAskedSeldom(t *testing.T) {
	t.Parallel()
	swept(t, func(s *Sweeper) {
		var n atomic.Int32
		for range 1000 {
			s.Add(Task{For: 10 * time.Second, Clean: func(time.Duration) Outcome { n.Add(1); return Silent }})
			later(10 * time.Millisecond)
		}
		later(time.Hour)
		if n.Load() < 1000 || n.Load() > 2000 {
			t.Errorf("%d commands", n.Load())
		}
	})
}
