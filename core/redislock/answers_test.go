package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// told is what callers are told for an answer. If all is false, nothing was executed, and the server could answer.
type told struct {
	open, nobody, refused bool
	why                   string // in the reason
	again                 bool   // nothing was executed, so that it is sent again
	plain                 bool   // a Cluster client does something else then
	slots                 bool   // a plain client sends a claim again, with keys by slots
}

const (
	toKeys     = "ACL SETUSER <user> ~holdfast:* ~{holdfast:*,"
	toChannels = "ACL SETUSER <user> &{holdfast:*,"
	notRedis   = "not Redis but another service"
)

// answers are those of servers of all kinds and versions, and of proxies.
var answers = map[string]told{
	hangUp:              {open: true, nobody: true, why: "the connection was closed in place of an answer"},
	"$5\r\nab" + hangUp: {open: true, nobody: true},
	silence:             {open: true, nobody: true},
	"what\r\n":          {open: true},
	":what\r\n":         {open: true, again: true}, // read as 0: there is a queue

	"-ERR what":                                                     {},
	"-OOM command not allowed when used":                            {why: "the server's memory is full"},
	"-MISCONF Redis is configured to save RDB":                      {why: "its disk"},
	"-NOREPLICAS Not enough good replicas to write.":                {why: "too few replicas"},
	"-WRONGTYPE Operation against a key holding the wrong kind":     {why: "the same prefix"},
	"-NOAUTH Authentication required.":                              {refused: true, why: "the server wants a password"},
	"-LOADING Redis is loading the dataset in memory":               {nobody: true, why: "is starting"},
	"-BUSY Redis is busy running a script.":                         {nobody: true, why: "SCRIPT KILL"},
	"-MASTERDOWN Link with MASTER is down and replica-serve-stale-": {nobody: true, why: "without its master"},
	"-CLUSTERDOWN The cluster is down":                              {nobody: true, why: "CLUSTER INFO"},
	"-ERR max number of clients reached":                            {nobody: true, why: "maxclients"},
	"-ERR max number of clients + cluster connections reached":      {nobody: true, why: "maxclients"}, // of a Cluster
	"-TRYAGAIN Multiple keys request during rehashing of slot":      {nobody: true, why: "is moving", again: true},
	"-READONLY You can't write against a read only replica.":        {nobody: true, why: "redis.NewFailoverClient", plain: true, again: true},
	"-MOVED 3999 127.0.0.1:6381":                                    {refused: true, why: "use redis.NewClusterClient", plain: true},
	"-CROSSSLOT Keys in request don't hash to the same slot":        {refused: true, why: "the keys of one name are in several slots", again: true, slots: true},

	// What a server does not have.
	"-NOSCRIPT No matching script. Please use EVAL.":                                {refused: true, why: "lists what locking needs", again: true},
	"-ERR unknown command 'evalsha', with args beginning with: '4e6'":               {refused: true, why: "lists what locking needs"},
	"-ERR unknown command 'evalsha', with args beginning with: 'upstream timeout'":  {refused: true, why: "lists what locking needs"}, // a name may have any words in it
	"-ERR Could not find scripting engine 'lua'":                                    {refused: true, why: "the server runs no scripts"},
	"-ERR This instance has Lua scripting support disabled":                         {refused: true, why: "the server runs no scripts"},
	"-ERR Command is not available: 'EVALSHA'. See the documentation":               {refused: true, why: "lists what locking needs"},
	"-unsupported command 'evalsha'":                                                {refused: true, why: "lists what locking needs"},
	"-ERR This Redis command is not allowed from script script: 4e6, on user":       {refused: true, why: "lists what locking needs"},
	"-ERR This Valkey command is not allowed from script script: 4e6, on user":      {refused: true, why: "lists what locking needs"},
	"-ERR Unknown Redis command called from script script: 4e6, on @user_script:7.": {refused: true, why: "lists what locking needs"},
	"-ERR Unknown command called from script script: 4e6, on @user_script:7.":       {refused: true, why: "lists what locking needs"},

	// Errors of commands in scripts, before Redis 7.
	"-ERR Error running script (call to f_a7): @user_script:8: @user_script: 8: -OOM command not ":                   {why: "the server's memory is full"},
	"-@user_script: 25: -OOM command not allowed when used memory > 'maxmemory'.":                                    {why: "the server's memory is full"},
	"-ERR Error running script (call to f_a7): @user_script:8: @user_script: 8: Unknown Redis command called from s": {refused: true, why: "lists what locking needs"},

	// Servers that check slots, and what only looks like their words: a name may have any words in it.
	"-ERR eval/evalsha command keys must be in same slot":                                      {again: true, slots: true},
	"-ERR 'EVALSHA' command keys must in same slot":                                            {again: true, slots: true},
	"-ERR unknown command 'evalsha', with args beginning with: 'ERR x keys must in same slot'": {refused: true, why: "lists what locking needs"},

	// Permissions, in the words of Redis 6.2, 7.0 and 7.2, of users with names that are words of theirs.
	"-NOPERM this user has no permissions":                                                                   {refused: true, why: "a command that locking needs"},
	"-NOPERM User x has no permissions to run the 'order:42' command":                                        {refused: true, why: "a command that locking needs"},
	"-NOPERM this user has no permissions to run the 'zadd' command or its subcommand":                       {refused: true, why: "ACL SETUSER <user> +zadd;"},
	"-NOPERM User monkey has no permissions to run the 'hset' command":                                       {refused: true, why: "ACL SETUSER <user> +hset;"},
	"-NOPERM User channels has no permissions to run the 'hset' command":                                     {refused: true, why: "ACL SETUSER <user> +hset;"},
	"-NOPERM User get has no permissions to run the 'set' command":                                           {refused: true, why: "run set: ACL SETUSER <user> +set;"},
	"-NOPERM User locks has no permissions to run the 'cluster|slots' command":                               {refused: true, why: "ACL SETUSER <user> +cluster|slots;"},
	"-ERR ACL failure in script: User monkey has no permissions to run the 'zadd' command script: 4e6, on":   {refused: true, why: "ACL SETUSER <user> +zadd;"},
	"-ERR The user executing the script can't run this command or subcommand script: 4 (it calls hget, set)": {refused: true, why: "run hget, set: ACL SETUSER <user> +hget +set;"},
	"-NOPERM this user has no permissions to access one of the keys used as arguments":                       {refused: true, why: toKeys},
	"-NOPERM No permissions to access a key":                                                                 {refused: true, why: toKeys},
	"-ERR ACL failure in script: No permissions to access a key script: 4e6":                                 {refused: true, why: toKeys},
	"-ERR The user executing the script can't access at least one of the keys mentioned in the command":      {refused: true, why: toKeys},
	"-NOPERM this user has no permissions to access one of the channels used as arguments":                   {refused: true, why: toChannels},
	"-NOPERM No permissions to access a channel":                                                             {refused: true, why: toChannels},

	// A proxy that has lost its connection to the server does not know whether the server has executed the command.
	"-upstream failure":                              {open: true, nobody: true}, // Envoy
	"-ERR server connection close":                   {open: true, nobody: true}, // predixy
	"-ERR Cluster node disconnected: 127.0.0.1:7000": {open: true, nobody: true}, // redis-cluster-proxy
	"-ERR Connection timed out":                      {open: true, nobody: true}, // twemproxy
	"-ERR Connection reset by peer":                  {open: true, nobody: true}, // twemproxy
	"-ERR proxy timeout, try it again":               {open: true, nobody: true}, // others

	// Somebody has mistaken the address.
	"HTTP/1.1 400 Bad Request\r\n": {open: true, refused: true, why: notRedis},
	"ERROR\r\n":                    {open: true, refused: true, why: notRedis}, // memcached
	"SSH-2.0-OpenSSH_9.2p1\r\n":    {open: true, refused: true, why: notRedis},
	"220 mail.example ESMTP\r\n":   {open: true, refused: true, why: notRedis},
}

// A lost reply to an acquire must come back to core, which asks again with what it knows. If the client sent it again by
// itself, it would be told that the name is held, by ourselves. A server that is not ready says so to every command: none
// of that is an answer to who has the name.
func TestACommandIsSentOnceAndItsAnswerIsToldForWhatItIs(t *testing.T) {
	t.Parallel()
	sends := []string{"evalsha", "eval"}
	for answer, want := range answers {
		t.Run(strings.Trim(oneLine(answer), "-"), func(t *testing.T) {
			t.Parallel()
			s := serve(t, nil)
			patient := func(o *redis.Options) {
				if answer != silence {
					o.ReadTimeout = 10 * time.Second // a busy machine is late with its answers
				}
			}
			calls := 0
			for kind, store := range s.storesOf(t, patient, redislock.WithoutServerCheck()) {
				if want.plain && strings.Contains(kind, "cluster") {
					continue
				}
				for what, call := range map[string]func(ctx context.Context, c driver.Claim) []error{
					"acquire": func(ctx context.Context, c driver.Claim) []error { return []error{acquireWith(ctx, store, c)} },
					"renew":   func(ctx context.Context, c driver.Claim) []error { return store.Renew(ctx, []driver.Claim{c, c}) },
				} {
					if what == "renew" && want.plain {
						continue
					}
					s.says(lenient(func(words []string) string {
						switch {
						case !strings.HasPrefix(answer, "-"):
							return answer
						case what == "acquire": // with what the server echoes, which the error does not have
							return answer + ": " + oneLine(strings.Join(words, " ")) + "\r\n"
						default:
							return answer + "\r\n"
						}
					}))
					calls++
					c := theClaim()
					c.Name = fmt.Sprintf("name-%d-", calls)
					sent := func() (n int) { // what another call has sent may be read later
						for _, r := range s.requests(sends...) {
							if strings.Contains(oneLine(strings.Join(r, " ")), c.Name) {
								n++
							}
						}
						return n
					}
					before := sent()
					var errs []error
					wrong := func(err error) bool {
						m := driver.Explain(err)
						return m.Answered() || m.Open() != want.open || m.Nobody != want.nobody || m.Refused != want.refused || !strings.Contains(driver.Reason(err), want.why)
					}
					for try := 0; try == 0 || want.again && try < 5 && slices.ContainsFunc(errs, wrong); try++ { // the last time may have been too late for an answer
						patience := 10 * time.Second
						if want.again {
							patience = time.Second // it goes on until then
						}
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						errs = call(ctx, c)
						cancel()
					}
					if i := slices.IndexFunc(errs, wrong); i >= 0 {
						t.Errorf("%s: %s: %v: %+v: %q", kind, what, errs[i], driver.Explain(errs[i]), driver.Reason(errs[i]))
					}
					n := sent() - before
					if relaid := want.slots && what == "acquire" && !strings.Contains(kind, "cluster"); n > len(errs) && !want.again || relaid && n < 2 {
						t.Errorf("%s: %s: sent %d times", kind, what, n)
					}
				}
			}
		})
	}
}

// Where the client has no connection to send by.
func TestWhatTheClientCannotSendWasNotSent(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		options func(o *redis.Options)
		then    func(t *testing.T, rdb *redis.Client)
		why     string
		nobody  bool
	}{
		"the dial is refused":              {options: func(o *redis.Options) { o.Dialer = nowhere }, nobody: true},
		"the dial takes too long":          {options: func(o *redis.Options) { o.DialTimeout, o.Dialer = time.Millisecond, late }, nobody: true},
		"all connections are in use":       {options: func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, 10*time.Millisecond }, then: take, why: "see PoolSize", nobody: true},
		"there may be no more connections": {options: func(o *redis.Options) { o.PoolSize, o.MaxActiveConns = 2, 1 }, then: take, why: "see PoolSize", nobody: true},
		"the client is closed":             {then: func(t *testing.T, rdb *redis.Client) { t.Helper(); ok(t, rdb.Close()) }, why: "close it after the Locker"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func([]string) string { return "+PONG\r\n" })
			o := hasty(s.addr)
			setNewer(o, "PipelinePoolSize", -1)
			if c.options != nil {
				c.options(o)
			}
			rdb := dial(t, o)
			if c.then != nil {
				c.then(t, rdb)
			}
			store := redislock.New(rdb, redislock.WithoutServerCheck())
			for range 2 {
				for _, err := range append(store.Renew(t.Context(), []driver.Claim{theClaim(), theClaim()}), acquireWith(t.Context(), store, theClaim())) {
					if m := driver.Explain(err); m.Kind != driver.NotDone || m.Nobody != c.nobody || !strings.Contains(driver.Reason(err), c.why) {
						t.Errorf("%v: %+v: %q", err, m, driver.Reason(err))
					}
				}
				redislock.BySlots(store)
			}
			if n := len(s.requests("evalsha")); n > 0 {
				t.Errorf("%d arrived", n)
			}
		})
	}
}

func late(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
}

// take has somebody else use the client's only connection.
func take(t *testing.T, rdb *redis.Client) {
	t.Helper()
	conn := rdb.Conn()
	t.Cleanup(func() { _ = conn.Close() })
	ok(t, conn.Ping(t.Context()).Err())
}

// setNewer sets an option that the oldest go-redis that we build with does not have, and says whether this one
// has it. A pointer is set to an empty struct.
func setNewer(o *redis.Options, name string, number int) bool {
	f := reflect.ValueOf(o).Elem().FieldByName(name)
	switch {
	case !f.IsValid():
		return false
	case f.Kind() == reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
	default:
		f.SetInt(int64(number))
	}
	return true
}

// As for a moment in a failover, when nodes do not agree.
func TestAClaimThatIsSentBackAndForthWasNotExecuted(t *testing.T) {
	t.Parallel()
	for what, opts := range map[string][]redislock.Option{"a master": nil, "replicas": {redislock.WithReplicas(1, time.Second)}} {
		port := make(chan string, 1)
		s := serve(t, func(words []string) string {
			if words[0] != "evalsha" {
				return "+OK\r\n"
			}
			at := <-port
			port <- at
			return "-MOVED 12539 :" + at + "\r\n" // where its slots come from a function, the client knows its nodes by that
		})
		_, at, _ := strings.Cut(s.addr, ":")
		port <- at
		g, err := redislock.New(s.cluster(t), append(opts, redislock.WithoutServerCheck())...).Acquire(t.Context(), claim("n", "x"))
		if n := len(s.requests("evalsha")); !redis.HasErrorPrefix(err, "MOVED") || !errors.Is(err, driver.ErrNotSent) || g.Fence != 0 || n < 2 {
			t.Errorf("%s: sent %d times, %+v, %v", what, n, g, err)
		}
	}
}

// listener is a hook that counts the commands that it sees.
type listener struct{ seen *atomic.Int64 }

func (listener) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l listener) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { l.seen.Add(1); return next(ctx, cmd) }
}

func (l listener) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { l.seen.Add(1); return next(ctx, cmds) }
}

// What New promises of hooks, which would see tokens, and of the client, whose connections are shared and whose options stay.
func TestTheClientsHooksSeeNoCommandAndItsOptionsStay(t *testing.T) {
	t.Parallel()
	s := serve(t, func([]string) string { return ":1\r\n" })
	rdb := dial(t, hasty(s.addr))
	before := *rdb.Options()
	ok(t, rdb.Ping(t.Context()).Err())
	var seen atomic.Int64
	rdb.AddHook(listener{&seen})
	stores := []driver.Driver{
		redislock.New(rdb), redislock.BySlots(redislock.New(rdb)), redislock.New(rdb, redislock.WithReplicas(1, time.Millisecond)),
	}
	rdb.AddHook(listener{&seen})
	for _, store := range stores {
		_ = acquireWith(t.Context(), store, theClaim())
		_ = store.Renew(t.Context(), []driver.Claim{theClaim(), theClaim()})
		_ = store.Release(t.Context(), theClaim())
	}
	if n := seen.Load(); n != 0 {
		t.Errorf("hooks of the client have seen %d commands", n)
	}
	if n := s.TotalConnections(); n > 2 { // for single commands, and for pipelines
		t.Errorf("%d connections: some besides those of the client", n)
	}
	if after := *rdb.Options(); after.ContextTimeoutEnabled || after.ReadTimeout != before.ReadTimeout || after.WriteTimeout != before.WriteTimeout {
		t.Errorf("the client's options are %v, %s, %s", after.ContextTimeoutEnabled, after.ReadTimeout, after.WriteTimeout)
	}
}

// Core makes calls of a punctual driver on its callers' goroutines: a deadline ends a read, whatever the client's ReadTimeout. A Cluster client
// that sets no deadlines is not punctual.
func TestADeadlineEndsEveryCallWhateverTheClientsTimeouts(t *testing.T) {
	t.Parallel()
	const noDeadlines = -2 // go-redis' word for that
	s := serve(t, lenient(func([]string) string { return silence }))
	for _, timeout := range []time.Duration{time.Hour, noDeadlines} {
		for kind, store := range s.storesOf(t, func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = timeout, timeout }, redislock.WithoutServerCheck()) {
			punctual := timeout > 0 || !strings.Contains(kind, "cluster")
			if store.Capabilities().Punctual != punctual {
				t.Errorf("%s, %s: punctual is not %t", kind, timeout, punctual)
			}
			if !punctual {
				continue
			}
			for what, call := range asked {
				t.Run(fmt.Sprintf("%s, %s: %s", kind, timeout, what), func(t *testing.T) {
					t.Parallel()
					ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
					defer cancel()
					over := make(chan struct{})
					go func() {
						defer close(over)
						_ = call(ctx, store)
					}()
					select {
					case <-over:
					case <-time.After(time.Minute):
						t.Error("it does not end")
					}
				})
			}
		}
	}
}

// toldThat fails the test unless Ready and an acquire say what is wrong. It returns what they say.
func toldThat(t *testing.T, locks *core.Locker, want string) string {
	t.Helper()
	ready := locks.Ready(t.Context())
	is(t, ready, core.ErrUnavailable)
	_, err := locks.Acquire(t.Context(), "name")
	is(t, err, core.ErrUnavailable)
	if !strings.Contains(driver.Reason(err), want) || !strings.Contains(fmt.Sprint(ready), want) {
		t.Errorf("%v: %s; Ready: %v: does not say %q", err, driver.Reason(err), ready, want)
	}
	return fmt.Sprint(driver.Reason(err), ready)
}
