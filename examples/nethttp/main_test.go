package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/httptour/tourtest"
)

func TestTheExample(t *testing.T) {
	t.Parallel()
	tourtest.Example(t, run)
}
