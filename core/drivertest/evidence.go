package drivertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// evidenceFolder is the environment variable that names where records go.
const evidenceFolder = "HOLDFAST_EVIDENCE"

type verdict string

const (
	passed    verdict = "passed"
	failed    verdict = "failed"
	lacking   verdict = "lacks"
	pointless verdict = "no server"
	notRun    verdict = "not run"
)

// result is how one case ended.
type result struct {
	Promise promise `json:"promise"`
	Case    string  `json:"case"`
	Outcome verdict `json:"outcome"`
	Reason  string  `json:"reason,omitempty"` // why it was skipped
}

// record is how a run of the suite ended. Its file is read by tools/evidence.
type record struct {
	mu sync.Mutex // protects what follows

	Backend string    `json:"backend"`
	Server  string    `json:"server"`
	Cases   []*result `json:"cases"` // in their order in the suite
}

// newRecord returns a record that is written, if anybody wants it, once all cases have ended.
func newRecord(t *testing.T, h Harness) *record {
	t.Helper()
	r := &record{Backend: h.Backend, Server: h.Server}
	folder := os.Getenv(evidenceFolder)
	if folder == "" || h.Backend == "" {
		return r
	}
	t.Cleanup(func() {
		if err := r.write(folder); err != nil {
			t.Errorf("drivertest: %v", err)
		}
	})
	return r
}

// begin returns the result of a case, which is settled when t has ended.
func (r *record) begin(t *testing.T, c testCase) *result {
	t.Helper()
	result := &result{Promise: c.promise, Case: c.name, Outcome: passed}
	r.mu.Lock()
	r.Cases = append(r.Cases, result)
	r.mu.Unlock()
	t.Cleanup(func() {
		if t.Failed() {
			result.Outcome = failed
		}
	})
	return result
}

func (r *record) write(folder string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	file := strings.ReplaceAll(strings.ToLower(r.Backend), " ", "-") + ".json"
	return os.WriteFile(filepath.Join(folder, file), append(text, '\n'), 0o600) //nolint:gosec // G703: whoever runs the tests says where
}
