package redislock

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// reason is what an error of the server's means to an operator.
type reason struct {
	prefix  string // of the server's text
	why     string
	refused bool // it will not pass by itself
}

const (
	noCommand    = "the server forbids or does not know a command" + needed
	noLua        = "the server runs no scripts (Lua), without which nothing can be locked there"
	notInScripts = "a script calls a command that the server forbids or does not know" + needed

	needed = "; docs/backends/redis.md lists what locking needs"
)

// reasons are constant texts, since core logs them: see driver.Because.
var reasons = []reason{
	{"NOAUTH", "NOAUTH: the server wants a password, so set Username and Password of the client", true},
	{"WRONGPASS", "WRONGPASS: the server does not know this user and password, so check Username and Password of the client", true},
	{"invalid password", "the server does not accept the client's password", true},
	{"Client sent AUTH, but no password is set", "the client sends a password, and the server has none: is it the right server?", true},
	{"Unknown Redis command", notInScripts, true},
	{"Unknown command called from script", notInScripts, true}, // Valkey
	{"This Redis command is not allowed from script", notInScripts, true},
	{"This Valkey command is not allowed from script", notInScripts, true},
	{"NOSCRIPT", "NOSCRIPT: the server forgets scripts while it runs them" + needed, true},
	{"unknown command", noCommand, true},
	{"unsupported command", noCommand, true},                          // Envoy
	{"Command is not available", noCommand, true},                     // Upstash
	{"Could not find scripting engine", noLua, true},                  // Valkey without its Lua module
	{"This instance has Lua scripting support disabled", noLua, true}, // Garnet
	{"CROSSSLOT", "CROSSSLOT: the keys of one name are in several slots, so something between client and server changes keys", true},
	{"MOVED", "MOVED: another node of the Cluster has the name, so use redis.NewClusterClient with all nodes", false},
	{"ASK ", "ASK: the name is moving to another node of the Cluster, so use redis.NewClusterClient", false},
	{"OOM", "OOM: the server's memory is full (maxmemory); leases are still renewed and released, new ones need memory", false},
	{"READONLY", "READONLY: the server is a replica; send commands to the master, which redis.NewFailoverClient finds", false},
	{"MISCONF", "MISCONF: the server refuses writes because it cannot save to its disk", false},
	{"NOREPLICAS", "NOREPLICAS: the server refuses writes because it has too few replicas (min-replicas-to-write)", false},
	{"LOADING", "LOADING: the server is starting and reads its data", false},
	{"BUSY ", "BUSY: the server runs a long script of somebody else; SCRIPT KILL ends it", false},
	{"MASTERDOWN", "MASTERDOWN: the server is a replica without its master", false},
	{"CLUSTERDOWN", "CLUSTERDOWN: the Cluster serves no slot, or not this one; CLUSTER INFO says why", false},
	{"TRYAGAIN", "TRYAGAIN: the name's slot is moving to another node of the Cluster", false},
	{"Script attempted to access a non local key", "the name's slot is moving to another node of the Cluster", false},
	{"Attempted to access a non local key", "the name's slot is moving to another node of the Cluster", false}, // Valkey 9
	{"max number of clients", "the server has as many clients as it takes (maxclients)", false},
	{"WRONGTYPE", "WRONGTYPE: a key of the lock has another type, so another program uses the same prefix", false},
}

// explain adds to an error of the server's what it means, and whether it will pass. The text of the
// error itself stays.
func explain(err error) error {
	if says(err, "NOPERM") || says(err, "ACL failure in script") || // since Redis 7.2
		strings.Contains(err.Error(), "The user executing the script can't") {
		return driver.Refused(driver.Because(err, forbidden(err.Error())))
	}
	for _, r := range reasons {
		if !says(err, r.prefix) {
			continue
		}
		err = driver.Because(err, r.why)
		if r.refused {
			err = driver.Refused(err)
		}
		return err
	}
	return err
}

// forbidden says which permission is missing, and the line that grants it. Of the server's text it takes only names
// of commands that we send.
func forbidden(text string) string {
	const all = "; docs/backends/redis.md has all permissions for locking"
	switch {
	case noKey.MatchString(text):
		return "NOPERM: the user may not access the keys of locks: ACL SETUSER <user> ~holdfast:* ~{holdfast:*, or with the prefix of WithPrefix" + all
	case noChannel.MatchString(text):
		return "NOPERM: the user may not access the channels of locks: ACL SETUSER <user> &{holdfast:*, or with the prefix of WithPrefix" + all
	}
	var names []string
	if at := mayNotRun.FindStringSubmatch(text); at != nil {
		for _, name := range words.FindAllString(strings.ToLower(at[1]+at[2]), -1) {
			if slices.Contains(sent, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return "NOPERM: the user may not run a command that locking needs" + all
	}
	return "NOPERM: the user may not run " + strings.Join(names, ", ") + ": ACL SETUSER <user> +" + strings.Join(names, " +") + all
}

// How servers say it. The name of a user, which may be anything, is not in what these match.
var (
	mayNotRun = regexp.MustCompile(`(?i)permissions to run the '([\w|]+)'|\(it calls ([\w, ]+)\)`) // the latter is ours: see said.go
	noKey     = regexp.MustCompile(`(?i)(permissions to|can't) access (a key|.{0,30}\bkeys )`)
	noChannel = regexp.MustCompile(`(?i)(permissions to|can't) access (a channel|.{0,30}\bchannels )`)
	words     = regexp.MustCompile(`[a-z|]+`)
)

// sent are the commands that locking needs.
var sent = strings.Fields("evalsha eval get mget set del pexpire pttl time exists zadd zrange zrem zscore zcount zrangebyscore" +
	" zremrangebyrank hset hget hdel publish spublish subscribe ssubscribe scan wait hello ping" +
	" cluster cluster|slots command")

// pooled explains the errors of the client's pool.
func pooled(err error) error {
	switch {
	case errors.Is(err, redis.ErrClosed):
		return driver.Because(err, "the client is closed; close it after the Locker")
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return driver.Because(err, "all connections of the client are in use: see PoolSize, or give locks a client of their own")
	default:
		return err
	}
}

// location is where the server is, as far as the client knows.
func (s *Store) location() string {
	const most = 3
	switch rdb := s.rdb.(type) {
	case *redis.Client:
		if addr := rdb.Options().Addr; addr != "FailoverClient" {
			return addr
		}
		return "the master that Sentinel names"
	case *redis.ClusterClient:
		addrs := rdb.Options().Addrs
		if len(addrs) > most {
			addrs = append(slices.Clone(addrs[:most]), "…")
		}
		return strings.Join(addrs, ", ")
	default:
		return "its client's address"
	}
}
