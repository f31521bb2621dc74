package inspector_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// mute is a lock service that does not answer until the test lets it.
func mute() (d *disturbed, answers *atomic.Bool) {
	answers = new(atomic.Bool)
	return &disturbed{Store: memlock.New(), before: func(ctx context.Context) error {
		if answers.Load() {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}, answers
}

func TestMarkersAreShownSoonAfterAShortOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, answers := mute()
		page := inspector.New(newLocker(t, d))
		defer page.Close()
		if status, text := get(page, "/markers"); status != 503 {
			t.Errorf("%d, %s", status, text)
		}
		answers.Store(true)
		time.Sleep(20*time.Second + time.Millisecond)
		if status, text := get(page, "/markers"); status != 200 {
			t.Errorf("20 s after the outage: %d, %s", status, text)
		}
	})
}

func TestMarkersThatAreNeverFoundInTimeAreLookedForATwentiethOfTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, _ := mute()
		page := inspector.New(newLocker(t, d))
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
