package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/httptour/tourtest"
)

func TestTheExampleOfEcho4(t *testing.T) {
	t.Parallel()
	tourtest.Example(t, run)
}

func TestTheExampleOfEcho5(t *testing.T) {
	t.Parallel()
	tourtest.Example(t, run, "-v5")
}
