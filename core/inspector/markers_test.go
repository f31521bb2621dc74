package inspector_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// mute is a lock service that does not answer until the test lets it.
type mute struct {
	*memlock.Store

	answers atomic.Bool
}

func (m *mute) Markers(ctx context.Context, prefix string) iter.Seq2[inspect.MarkerInfo, error] {
	if m.answers.Load() {
		return m.Store.Markers(ctx, prefix)
	}
	return func(yield func(inspect.MarkerInfo, error) bool) {
		<-ctx.Done()
		yield(inspect.MarkerInfo{}, ctx.Err())
	}
}

func TestMarkersAreShownSoonAfterAShortOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &mute{Store: memlock.New()}
		page := inspector.New(newLocker(t, d))
		defer page.Close()
		if status, text := get(page, "/markers"); status != 503 {
			t.Errorf("%d, %s", status, text)
		}
		d.answers.Store(true)
		time.Sleep(20*time.Second + time.Millisecond)
		if status, text := get(page, "/markers"); status != 200 {
			t.Errorf("20 s after the outage: %d, %s", status, text)
		}
	})
}

func TestMarkersThatAreNeverFoundInTimeAreLookedForATwentiethOfTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		page := inspector.New(newLocker(t, &mute{Store: memlock.New()}))
		defer page.Close()
		const all = 10000 * time.Second
		var looked time.Duration
		for began := time.Now(); time.Since(began) < all; time.Sleep(time.Second) {
			asked := time.Now()
			get(page, "/markers")
			looked += time.Since(asked)
		}
		if looked > all/15 {
			t.Errorf("%s of %s", looked, all)
		}
	})
}
