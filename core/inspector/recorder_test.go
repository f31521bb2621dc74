package inspector_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// down is a lock service that does not answer.
type down struct{ *memlock.Store }

func (down) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	return driver.Grant{}, errors.Join(driver.ErrNotSent, errors.New("gone"))
}

func TestAPageAboutAPrefixTellsOfNoOtherNamesOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := inspector.NewRecorder()
		locks := newLocker(t, down{memlock.New()}, core.WithObserver(seen.Observe))
		for _, name := range []string{"order:42", "secret"} {
			if _, err := locks.TryAcquire(t.Context(), name); !errors.Is(err, core.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		page := inspector.New(locks, inspector.WithRecorder(seen), inspector.WithPrefix("order:"))
		defer page.Close()
		b := watch(t, page, "")
		defer b.leave()
		if text := <-b.data; strings.Contains(text, "secret") || !strings.Contains(text, `"outages":2`) {
			t.Error(text)
		}
	})
}
