package main

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	logging.Disable() // as main does
	goleak.VerifyTestMain(m)
}

func TestEveryPitfallShowsAndNoneWithHoldfast(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	ok, err := show(t.Context(), &out, pitfalls())
	if err != nil || !ok {
		t.Errorf("%v, %v; it has shown:\n%s", ok, err, out.String())
	}
}

func TestAPitfallThatDoesNotShowIsAFailure(t *testing.T) {
	t.Parallel()
	scene := func(harm bool) func(context.Context, *lab) (string, bool, error) {
		return func(context.Context, *lab) (string, bool, error) { return "", harm, nil }
	}
	for name, p := range map[string]pitfall{
		"safe by hand":         {byHand: scene(false), holdfast: scene(false)},
		"broken with Holdfast": {byHand: scene(true), holdfast: scene(true)},
	} {
		if ok, err := show(t.Context(), new(strings.Builder), []pitfall{p}); ok || err != nil {
			t.Errorf("%s: %v, %v; want false", name, ok, err)
		}
	}
}
