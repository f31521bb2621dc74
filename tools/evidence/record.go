package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// record is one run of the conformance suite, as core/drivertest writes it.
type record struct {
	Backend string `json:"backend"`
	Server  string `json:"server"`
	Cases   []struct {
		Promise string `json:"promise"`
		Case    string `json:"case"`
		Outcome string `json:"outcome"`
		Reason  string `json:"reason"`
	} `json:"cases"`
}

// The outcomes of a case.
const (
	passed    = "passed"
	failed    = "failed"
	lacking   = "lacks"     // the backend does not claim to be able to
	pointless = "no server" // there is nothing to break
	notRun    = "not run"
)

// read returns the records of a folder by their backend.
func read(folder string) (map[string]record, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no record in %q: make test writes them", folder)
	}
	records := make(map[string]record, len(files))
	for _, file := range files {
		r, err := readFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if _, twice := records[r.Backend]; twice {
			return nil, fmt.Errorf("%s: a second record of %s", file, r.Backend)
		}
		records[r.Backend] = r
	}
	return records, nil
}

func readFile(file string) (r record, err error) {
	text, err := os.ReadFile(file) //nolint:gosec // G304: in the folder that was asked for
	if err != nil {
		return r, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // a record that says more than this program reads is a new kind of record
	if err := d.Decode(&r); err != nil {
		return r, err
	}
	for _, c := range r.Cases {
		switch c.Outcome {
		case passed, failed, lacking, pointless, notRun:
		default:
			return r, fmt.Errorf("case %s: unknown outcome %q", c.Case, c.Outcome)
		}
		if c.Promise == "" {
			return r, fmt.Errorf("case %s is evidence for nothing", c.Case)
		}
	}
	if r.Backend == "" || len(r.Cases) == 0 {
		return r, errors.New("a record of nothing")
	}
	return r, nil
}
