package main

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

func TestMain(m *testing.M) {
	logging.Disable() // as main does
	goleak.VerifyTestMain(m)
}

func TestEveryPitfallShowsAndNoneWithHoldfast(t *testing.T) {
	t.Parallel()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		wantAllShown(t, "")
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		address := servers.Redis(t).Addr()
		wantAllShown(t, address)
		rdb := redis.NewClient(&redis.Options{Addr: address})
		defer rdb.Close()
		if keys, err := rdb.Keys(t.Context(), "*").Result(); len(keys) > 0 || err != nil {
			t.Errorf("left on the server: %q, %v", keys, err)
		}
	})
}

func wantAllShown(t *testing.T, address string) {
	t.Helper()
	var out strings.Builder
	ok, err := show(t.Context(), &out, address, pitfalls())
	if err != nil || !ok {
		t.Errorf("%v, %v; it has shown:\n%s", ok, err, out.String())
	}
	for _, p := range pitfalls() {
		if !strings.Contains(out.String(), "\n"+p.name+" ") {
			t.Errorf("no line of the table for %q:\n%s", p.name, out.String())
		}
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if ok, err := show(t.Context(), new(strings.Builder), "", []pitfall{p}); ok || err != nil {
				t.Errorf("%v, %v; want false", ok, err)
			}
		})
	}
}
