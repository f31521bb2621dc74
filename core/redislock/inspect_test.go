package redislock_test

import (
	"crypto/sha1" //nolint:gosec // G505: as the script does
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func TestInspectTellsWhichOfALineAreDead(t *testing.T) {
	t.Parallel()
	p := part(t)
	line, now := p.side("name", "line"), time.Now().UnixMilli()
	ok(t, p.direct.ZAdd(t.Context(), line, redis.Z{Score: float64(now - 60_000), Member: "dead"}, redis.Z{Score: float64(now), Member: "alive"}, redis.Z{Score: float64(now + 1), Member: "no beat"}).Err())
	p.do(t, "hset", line+":beats", "dead", now-1, "alive", now+9_000)
	info := known(t, p.store(t), "name")
	if info.Held || len(info.Line) != 3 || info.Line[0].Alive || !info.Line[1].Alive || info.Line[2].Alive || info.Line[0].Waited < time.Minute {
		t.Errorf("%+v", info)
	}
	if infos := list(t, p.store(t), ""); len(infos) != 0 {
		t.Errorf("a name that nobody holds is listed: %+v", infos)
	}
}

// Also where keys of others have no prefix to tell them by. That a prefix is no pattern is a case of the suite.
func TestLeasesAreListedAndNothingElseIs(t *testing.T) {
	t.Parallel()
	const many = 150 // more than a page
	for _, prefix := range []string{"holdfast:", ""} {
		t.Run("with "+prefix, func(t *testing.T) {
			t.Parallel()
			p, _ := own(t)
			p.prefix = prefix
			s := store(t, dial(t, &redis.Options{Addr: p.addr}), redislock.WithPrefix(prefix))
			for i := range many {
				grant(t, s, claim(fmt.Sprint("many:", i), "x", labelled))
			}
			look(t, s, claim("many:0", "waits")) // a queue
			done := claim("done", "done", dedups)
			grant(t, s, done)
			release(t, s, done) // leaves a marker
			p.do(t, "set", p.key("foreign"), "bm90IGhvbGRmYXN0J3M=", "ex", 60)
			p.do(t, "set", p.key("foreign, and long"), strings.Repeat("t", 40), "ex", 60)
			p.do(t, "hset", p.key("foreign hash"), "a", "b")
			if prefix != "" {
				p.do(t, "set", "other:"+p.key("name"), "x", "ex", 60)
			}
			p.do(t, "config", "resetstat")
			all := list(t, s, "")
			if len(all) != many+3 {
				t.Errorf("%d names", len(all))
			}
			for name, info := range all {
				foreign := strings.HasPrefix(name, "foreign")
				if info.Foreign != foreign || foreign != (info.Kind == inspect.HoldForeign) || foreign == (info.Label == "who") || info.Remaining == 0 && name != "foreign hash" {
					t.Errorf("%+v", info)
				}
			}
			if steps, keys := p.calls(t, "scan"), p.calls(t, "keys"); steps < 2 || steps > 10 || keys > 0 {
				t.Errorf("a list of %d names took %d calls of SCAN and %d of KEYS", many, steps, keys)
			}
		})
	}
}

// The handles are those of the first 22 characters, as if they were a token.
func TestAForceReleaseLeavesAloneWhatIsForeign(t *testing.T) {
	t.Parallel()
	p := part(t)
	s := p.store(t)
	for _, value := range []string{"bm90IGhvbGRmYXN0J3M=", "7", "short\x1flabel", strings.Repeat("t", 23) + "label"} {
		p.do(t, "set", p.key("name"), value)
		_ = another(t, s.Evict(t.Context(), "name", handle(value[:min(22, len(value))])))
		if p.value(t, "name") != value {
			t.Errorf("%q was deleted", value)
		}
	}
}

// handle is that of a token.
func handle(token string) string {
	sum := sha1.Sum([]byte(token))
	return hex.EncodeToString(sum[:8])
}
