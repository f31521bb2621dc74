// Package storetest is what every idempotency.Store has to do.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/httpmw/idempotency"
)

// Run tests a store. Its keys are fresh for each run.
func Run(t *testing.T, s idempotency.Store) {
	t.Helper()
	run := time.Now().UnixNano()
	key := func(name string) string { return fmt.Sprintf("%d-%s", run, name) }
	wants := func(key string, want []byte) {
		t.Helper()
		if got, err := s.Load(t.Context(), key); err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%s: %q, %v, want %q", key, got, err, want)
		}
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	wants(key("none"), nil)
	ok(s.Save(t.Context(), key("a"), every, time.Hour))
	wants(key("a"), every)
	ok(s.Save(t.Context(), key("a"), []byte("second"), time.Hour)) // the first one stays
	wants(key("a"), every)
	wants(key("A"), nil)
	large := bytes.Repeat([]byte("x"), 2<<20)
	ok(s.Save(t.Context(), key("large"), large, time.Hour))
	wants(key("large"), large)

	ok(s.Save(t.Context(), key("short"), []byte("1"), 50*time.Millisecond))
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if got, err := s.Load(t.Context(), key("short")); err == nil && got == nil {
			break
		}
	}
	wants(key("short"), nil) // its window is over
	ok(s.Save(t.Context(), key("short"), []byte("2"), time.Hour))
	wants(key("short"), []byte("2"))

	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { ok(s.Save(t.Context(), key("many"), fmt.Append(nil, i), time.Hour)) })
	}
	all.Wait()
	first, err := s.Load(t.Context(), key("many"))
	ok(err)
	ok(s.Save(t.Context(), key("many"), []byte("late"), time.Hour))
	wants(key("many"), first)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Load(ended, key("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("Load in a context that has ended: %v", err)
	}
}
