package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestEverySweepRuns(t *testing.T) {
	t.Parallel()
	for _, s := range sweeps() {
		s.sizes = slices.DeleteFunc(s.sizes, func(z size) bool { return z.n > 1000 || z.by > 20 })
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var text bytes.Buffer
			sound, err := quickBench(t).showSweeps(t.Context(), []sweep{s}, &text)
			if err != nil {
				t.Fatal(err)
			}
			if !sound {
				t.Errorf("Holdfast is at fault:\n%s", &text)
			}
			for _, z := range s.sizes {
				row := fmt.Sprintf("\n| %d | %d | ", z.n, z.by)
				if !strings.Contains(text.String(), row) {
					t.Errorf("no row of %d and %d in\n%s", z.n, z.by, &text)
				}
			}
		})
	}
}
