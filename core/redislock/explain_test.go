package redislock

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/driver"
)

// The words of Redis 6.2, 7.0 and 7.2, and users with names that are words of theirs.
func TestAMissingPermissionIsNamedWithTheLineThatGrantsIt(t *testing.T) {
	t.Parallel()
	const keys, channels = "ACL SETUSER <user> ~holdfast:* ~{holdfast:*,", "ACL SETUSER <user> &{holdfast:*,"
	for text, want := range map[string]string{
		"NOPERM this user has no permissions to run the 'zadd' command or its subcommand":                       "ACL SETUSER <user> +zadd;",
		"NOPERM User locks has no permissions to run the 'evalsha' command":                                     "ACL SETUSER <user> +evalsha;",
		"NOPERM User monkey has no permissions to run the 'hset' command":                                       "ACL SETUSER <user> +hset;",
		"NOPERM User channels has no permissions to run the 'hset' command":                                     "ACL SETUSER <user> +hset;",
		"NOPERM User get has no permissions to run the 'set' command":                                           "run set: ACL SETUSER <user> +set;",
		"NOPERM User locks has no permissions to run the 'cluster|slots' command":                               "ACL SETUSER <user> +cluster|slots;",
		"ERR ACL failure in script: User monkey has no permissions to run the 'zadd' command script: 4e6, on":   "ACL SETUSER <user> +zadd;",
		"ERR The user executing the script can't run this command or subcommand script: 4 (it calls hget, set)": "run hget, set: ACL SETUSER <user> +hget +set;",
		"NOPERM this user has no permissions to access one of the keys used as arguments":                       keys,
		"NOPERM No permissions to access a key":                                                                 keys,
		"ERR ACL failure in script: No permissions to access a key script: 4e6":                                 keys,
		"ERR The user executing the script can't access at least one of the keys mentioned in the command":      keys,
		"NOPERM this user has no permissions to access one of the channels used as arguments":                   channels,
		"NOPERM No permissions to access a channel":                                                             channels,
		"NOPERM User x has no permissions to run the 'order:42' command":                                        "a command that locking needs",
	} {
		why := driver.Reason(explain(failure(text)))
		if !strings.Contains(why, want) || strings.Contains(why, "order:42") {
			t.Errorf("%q: %q does not say %q", text, why, want)
		}
	}
}
