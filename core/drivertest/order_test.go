package drivertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestWhatABackendNeedNotExpectIsComplainedOf(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel) // after the subtests
	type call func(d driver.Driver, link *Link)
	claim := func(change func(c *driver.Claim)) driver.Claim {
		c := driver.Claim{Name: "name", Token: "token", TTL: 30 * time.Second}
		if change != nil {
			change(&c)
		}
		return c
	}
	acquire := func(change func(c *driver.Claim)) call {
		return func(d driver.Driver, _ *Link) { _, _ = d.Acquire(ctx, claim(change)) }
	}
	wait := func(ctx context.Context) call {
		return func(d driver.Driver, _ *Link) { _, _ = d.Wait(ctx, claim(nil)) }
	}
	renew := func(change func(c *driver.Claim)) call {
		return func(d driver.Driver, _ *Link) { d.Renew(ctx, []driver.Claim{claim(change)}) }
	}
	release := func(change func(c *driver.Claim)) call {
		return func(d driver.Driver, _ *Link) { _ = d.Release(ctx, claim(change)) }
	}
	cut := func(_ driver.Driver, link *Link) { link.CutReply(1) }
	lost := func(_ driver.Driver, link *Link) { link.CutRequest(1) }
	short := func(c *driver.Claim) { c.TTL = 300 * time.Millisecond }
	keep := func(c *driver.Claim) { c.Keep = time.Second }
	busy := func(d driver.Driver, _ *Link) {
		_, _ = d.Acquire(ctx, driver.Claim{Name: "name", Token: "another", TTL: time.Minute})
	}
	for what, row := range map[string]struct {
		calls []call
		want  string
	}{
		"a life":               {[]call{acquire(nil), renew(nil), renew(short), acquire(short), release(nil), release(nil)}, ""},
		"asked again":          {[]call{cut, acquire(nil), acquire(nil), renew(nil), release(nil)}, ""},
		"one token, two TTLs":  {[]call{lost, acquire(short), acquire(nil)}, "a TTL of 30s, while a command with 300ms is open"},
		"a renewal's TTL":      {[]call{cut, acquire(short), acquire(short), renew(nil)}, "a TTL of 30s, while"},
		"a late renewal":       {[]call{acquire(nil), cut, renew(nil), renew(short)}, "a TTL of 300ms, while"},
		"one token, two Keeps": {[]call{cut, acquire(nil), acquire(keep)}, "is open"},
		"a verification":       {[]call{cut, acquire(nil), renew(func(c *driver.Claim) { c.TTL = 0 })}, ""},
		"over":                 {[]call{acquire(nil), release(nil), acquire(nil)}, "after its release"},
		"over, unheard":        {[]call{acquire(nil), cut, release(nil), wait(ctx)}, "after its release"},
		"another name":         {[]call{acquire(nil), acquire(func(c *driver.Claim) { c.Name = "other" })}, "one for"},
		"no bound":             {[]call{wait(context.Background())}, "without a deadline"},
		"two at once": {[]call{busy, func(d driver.Driver, _ *Link) {
			brief, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			c := claim(nil)
			c.Heard = func(*driver.Held) { _, _ = d.Acquire(ctx, claim(nil)) }
			_, _ = d.Wait(brief, c)
		}}, "it asks already"},
		"one after the other": {[]call{busy, func(d driver.Driver, _ *Link) {
			brief, cancel := context.WithTimeout(ctx, time.Second)
			c := claim(nil)
			c.Heard = func(*driver.Held) {
				cancel() // given up
				_, _ = d.Acquire(ctx, claim(nil))
			}
			_, _ = d.Wait(brief, c)
			cancel()
		}}, ""},
		"a fraction":     {[]call{acquire(func(c *driver.Claim) { c.TTL++ })}, "a TTL of"},
		"no TTL":         {[]call{acquire(func(c *driver.Claim) { c.TTL = 0 })}, "a TTL of"},
		"a long label":   {[]call{acquire(func(c *driver.Claim) { c.Label = strings.Repeat("l", 300) })}, "a label"},
		"a hand-off":     {[]call{acquire(func(c *driver.Claim) { c.Handoff = "short" })}, "a hand-off"},
		"readers' block": {[]call{acquire(func(c *driver.Claim) { c.Limit, c.Fences = driver.Readers, 4 })}, "4 fences"},
		"a long Keep":    {[]call{acquire(func(c *driver.Claim) { c.Keep = time.Hour })}, "Keep is"},
		"a large batch": {[]call{func(d driver.Driver, _ *Link) {
			d.Renew(ctx, make([]driver.Claim, driver.MaxRenewals+1))
		}}, "129 claims"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			link := NewLink(memlock.New())
			var said []string
			d := Orderly(link, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
			for _, call := range row.calls {
				call(d, link)
			}
			if row.want == "" && len(said) > 0 || row.want != "" && (len(said) == 0 || !strings.Contains(said[0], row.want)) {
				t.Errorf("said %q, not %q", said, row.want)
			}
		})
	}
}
