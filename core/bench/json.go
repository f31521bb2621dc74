package main

import (
	"encoding/json"
	"math"
	"os"
	"runtime"
	"time"
)

// document is the JSON form of a run: every figure of every round.
type document struct {
	Go, System, Redis string

	Cores     int
	Rounds    int
	Time      string // of a contestant's round, for scenarios of length 1
	Scenarios []outcome
}

func (b *bench) document(redis string) document {
	return document{
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Redis: redis,
		Cores: runtime.GOMAXPROCS(0), Rounds: b.rounds, Time: b.length.Round(time.Millisecond).String(),
	}
}

func (d document) write(path string) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// MarshalJSON leaves out what is no number: JSON has no NaN.
func (r result) MarshalJSON() ([]byte, error) {
	for _, figures := range r.Rounds {
		for name, x := range figures {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				delete(figures, name)
			}
		}
	}
	type plain result
	return json.Marshal(plain(r))
}

// MarshalJSON is null where nothing is known.
func (s spread) MarshalJSON() ([]byte, error) {
	if math.IsNaN(s.Median) {
		return []byte("null"), nil
	}
	type plain spread
	return json.Marshal(plain(s))
}
