//go:build linux

package weather

import (
	"cmp"
	"encoding/json"
	"flag"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

var flagSoak = flag.Duration("weather.soak", 6*time.Second, "how long to soak")

// The size of a soak.
const (
	soakProcesses  = 3
	soakNames      = 200
	soakGoroutines = 500
	growth         = 1.05             // of heap and descriptors, over the last two thirds
	settled        = 10 * time.Minute // what has not run for so long may still grow
)

// soak is a run of it.
type soak struct {
	t       *testing.T
	redis   string
	file    string
	board   board
	started int64

	processes []*child
	numbers   []int64
	last      []Sample // of each process that runs
	ended     Sample   // all that were killed, together
}

// TestSoak looks for what only time shows. The first process lives through it, and is measured;
// the others are killed now and then.
func TestSoak(t *testing.T) { //nolint:paralleltest // it wants the machine for itself
	s := &soak{t: t, redis: servers.Redis(t).Addr(), file: filepath.Join(t.TempDir(), "board")}
	var err error
	if s.board, err = openBoard(s.file, soakNames); err != nil {
		t.Fatal(err)
	}
	for range soakProcesses {
		s.processes = append(s.processes, s.start())
		s.numbers, s.last = append(s.numbers, s.started), append(s.last, Sample{})
	}
	samples := max(6, min(45, int(*flagSoak/time.Second)))
	random := rand.New(rand.NewPCG(*flagSeed, 0))
	var rates []float64
	var first []Sample
	kills, before := 0, int64(0)
	for range samples {
		begin := time.Now()
		if random.IntN(2) == 0 {
			s.kill(1 + random.IntN(soakProcesses-1))
			kills++
		}
		time.Sleep(*flagSoak/time.Duration(samples) - time.Since(begin))
		s.sample()
		all := s.total()
		rates = append(rates, float64(all.Grants-before)/time.Since(begin).Seconds())
		before = all.Grants
		first = append(first, s.last[0])
	}
	s.report(first[samples/3:], rates, kills)
	for _, p := range s.processes {
		_ = p.in.Close()
		if err := p.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

func (s *soak) start() *child {
	s.started++
	role, err := json.Marshal(SoakConfig{
		Number: s.started, Redis: s.redis, Board: s.file, Names: soakNames, Goroutines: soakGoroutines / soakProcesses,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return start(s.t, roleEnv+"=soak "+string(role))
}

// kill has another process take one's place.
func (s *soak) kill(i int) {
	s.processes[i].kill()
	s.board.sweep(s.numbers[i])
	s.ended.add(s.last[i])
	s.processes[i], s.last[i] = s.start(), Sample{}
	s.numbers[i] = s.started
}

func (s *soak) sample() {
	for i, p := range s.processes {
		if _, err := io.WriteString(p.in, "sample\n"); err != nil {
			s.t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(p.line()), &s.last[i]); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *Sample) add(o Sample) {
	s.Grants += o.Grants
	s.Overlaps += o.Overlaps
	s.Lost += o.Lost
	s.Failed += o.Failed
	s.Note = cmp.Or(s.Note, o.Note)
}

func (s *soak) total() Sample {
	sum := s.ended
	for _, o := range s.last {
		sum.add(o)
	}
	return sum
}

// report says what it came to. Heap and descriptors are compared as the medians of the first
// and of the last third of the samples.
func (s *soak) report(measured []Sample, rates []float64, kills int) {
	all := s.total()
	third := len(measured) / 3
	early, late := median(measured[:third]), median(measured[len(measured)-third:])
	s.t.Logf("%v, seed %d: %d grants, %d processes killed, %d leases lost, %d calls failed (%q), %d overlaps", *flagSoak, *flagSeed,
		all.Grants, kills, all.Lost, all.Failed, all.Note, all.Overlaps)
	s.t.Logf("grants a second, in each third: %.0f, %.0f, %.0f", mean(rates[:len(rates)/3]), mean(rates[len(rates)/3:2*len(rates)/3]), mean(rates[2*len(rates)/3:]))
	s.t.Logf("heap %d KiB, then %d KiB; descriptors %d, then %d; goroutines %d, then %d", early.Heap>>10, late.Heap>>10,
		early.Files, late.Files, early.Goroutines, late.Goroutines)
	if all.Overlaps > all.Lost || all.Grants == 0 {
		s.t.Errorf("%d overlaps, %d leases lost", all.Overlaps, all.Lost)
	}
	if *flagSoak >= settled && (float64(late.Heap) > growth*float64(early.Heap) || float64(late.Files) > growth*float64(early.Files)) {
		s.t.Errorf("it grows")
	}
}

func median(all []Sample) Sample {
	var heaps, files, goroutines []int64
	for _, s := range all {
		heaps, files = append(heaps, int64(s.Heap)), append(files, int64(s.Files))
		goroutines = append(goroutines, int64(s.Goroutines))
	}
	return Sample{
		Heap: uint64(spread(heaps).P50), Files: int(spread(files).P50), Goroutines: int(spread(goroutines).P50),
	}
}

func mean(all []float64) float64 {
	sum := 0.0
	for _, x := range all {
		sum += x
	}
	return sum / float64(max(1, len(all)))
}
