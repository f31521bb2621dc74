//go:build linux

package chaos

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// Each promise says what breaks it and what proves it.
func TestEveryGuaranteeHasItsProof(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(repository, "docs", "guarantees.md"))
	backendtest.OK(t, err)
	promised, _, _ := strings.Cut(string(page), "## Not promised")
	promises := strings.Split(promised, "\n### ")[1:]
	if len(promises) != promisesMade {
		t.Errorf("%d promises; want %d", len(promises), promisesMade)
	}
	for _, p := range promises {
		title, text, _ := strings.Cut(p, "\n")
		for _, part := range []string{"- Breaks it: ", "- Proof: `Test"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: has no %q", title, part)
			}
		}
	}
}
