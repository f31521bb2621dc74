package redislock

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// Some servers run scripts at the same time. Then somebody else may take the name after a script has
// found it free. There is no such server here, so the scripts do it to themselves.
func TestANameThatIsTakenBetweenLookAndGrantIsNotGranted(t *testing.T) {
	t.Parallel()
	rdb := opened(t, redis.NewClient(hasty(servers.Redis(t).Addr())))
	for name, args := range map[string][]any{
		"acquire.lua": {"mine", 60_000},
		"ask.lua":     {"mine", 60_000, 1, "member", 3000, "channels", "", ""},
	} {
		const decided, meanwhile = "\nlocal fence", "\nredis.call('SET', KEYS[1], 'theirs')"
		text := source(name)
		if strings.Count(text, decided) != 1 {
			t.Fatalf("%s: where does it decide?", name)
		}
		text = strings.Replace(text, decided, meanwhile+decided, 1)
		reply, err := rdb.Eval(t.Context(), text, []string{name, "fence", "queue", "beats"}[:min(4, max(3, len(args)-3))], args...).Result()
		if err != nil {
			t.Fatal(err)
		}
		if text, granted := reply.(string); granted {
			t.Errorf("%s grants it, with the fence %s", name, text)
		}
		if value := rdb.Get(t.Context(), name).Val(); value != "theirs" {
			t.Errorf("%s: the value is %q", name, value)
		}
	}
}
