package tasks

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAllWhoWaitAreToldOfTheLastEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New()
		for i := range 3 {
			g.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				if i == 2 {
					g.Go(func() { time.Sleep(time.Second) })
				}
			})
		}
		began, over := time.Now(), make(chan error, 2)
		for range 2 {
			go func() { over <- g.Wait(t.Context()) }()
		}
		for range 2 {
			if err := <-over; err != nil || time.Since(began) != 3*time.Second || g.Count() != 0 {
				t.Errorf("%v after %s, %d under way", err, time.Since(began), g.Count())
			}
		}
	})
}
