package redislock_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// What no error may have a piece of.
const (
	secretToken   = "kR3vY_q0-ZtBw9XnLm2EaC" //nolint:gosec // G101: nobody's
	secretHandoff = "Jd7sUpG4-oHfTi5cQWzx1"  //nolint:gosec // G101: nobody's
	nextToken     = "w5TqXj2-uIoRc9LzEnB_vK" //nolint:gosec // G101: nobody's
)

// asked are the calls of a Store that a server may refuse.
var asked = map[string]func(ctx context.Context, s driver.Driver) error{
	"acquire":               func(ctx context.Context, s driver.Driver) error { return acquireWith(ctx, s, theClaim()) },
	"acquire with dedup":    func(ctx context.Context, s driver.Driver) error { return acquireWith(ctx, s, theClaim(dedups)) },
	"acquire by a hand-off": func(ctx context.Context, s driver.Driver) error { return acquireWith(ctx, s, theClaim(byHandoff)) },
	"share":                 func(ctx context.Context, s driver.Driver) error { return acquireWith(ctx, s, theClaim(reader)) },
	"share a limit":         func(ctx context.Context, s driver.Driver) error { return acquireWith(ctx, s, theClaim(permit)) },
	"renew":                 func(ctx context.Context, s driver.Driver) error { return renewWith(ctx, s, theClaim()) },
	"renew shared":          func(ctx context.Context, s driver.Driver) error { return renewWith(ctx, s, theClaim(reader)) },
	"renew limited":         func(ctx context.Context, s driver.Driver) error { return renewWith(ctx, s, theClaim(permit)) },
	"release":               func(ctx context.Context, s driver.Driver) error { return s.Release(ctx, theClaim()) },
	"complete":              func(ctx context.Context, s driver.Driver) error { return s.Release(ctx, theClaim(dedups)) },
	"keep":                  func(ctx context.Context, s driver.Driver) error { return s.Release(ctx, theClaim(kept, dedups)) },
	"detach":                func(ctx context.Context, s driver.Driver) error { return s.Release(ctx, theClaim(kept, byHandoff)) },
	"part":                  func(ctx context.Context, s driver.Driver) error { return s.Release(ctx, theClaim(reader, dedups)) },
	"wait":                  func(ctx context.Context, s driver.Driver) error { return waitWith(ctx, s, theClaim()) },
	"stand":                 func(ctx context.Context, s driver.Driver) error { return waitWith(ctx, s, theClaim(dedups)) },
	"leave": func(ctx context.Context, s driver.Driver) error {
		_ = waitWith(ctx, s, theClaim(reader)) // it may be in the queue now
		return s.Release(ctx, theClaim(reader))
	},
	"acquire at a node": atNode(func(ctx context.Context, n ranked.Node, c ranked.Claim) error {
		_, err := n.AcquireRanked(ctx, c)
		return err
	}),
	"wait at a node": atNode(func(ctx context.Context, n ranked.Node, c ranked.Claim) error {
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		return n.WaitRanked(ctx, c)
	}),
	"inspect": func(ctx context.Context, s driver.Driver) error {
		if i, ok := s.(inspect.Inspector); ok {
			_, err := i.Inspect(ctx, "name")
			return err
		}
		return nil
	},
}

func theClaim(opts ...func(*driver.Claim)) driver.Claim {
	return with(driver.Claim{Name: "name", Token: secretToken, TTL: 3 * time.Second, Label: "who", Scope: "pay"}, opts...)
}

// atNode has package redlock call s as one of its nodes.
func atNode(call func(ctx context.Context, n ranked.Node, c ranked.Claim) error) func(context.Context, driver.Driver) error {
	return func(ctx context.Context, s driver.Driver) error {
		n, ok := s.(ranked.Node)
		if !ok {
			return nil
		}
		return call(ctx, n, ranked.Claim{Claim: theClaim(), Rank: 1, Floor: 1})
	}
}

func waitWith(ctx context.Context, s driver.Driver, c driver.Claim) error {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err := s.Wait(ctx, c)
	return err
}

func byHandoff(c *driver.Claim) { c.Handoff = secretHandoff }

func acquireWith(ctx context.Context, s driver.Driver, c driver.Claim) error {
	_, err := s.Acquire(ctx, c)
	return err
}

func renewWith(ctx context.Context, s driver.Driver, c driver.Claim) error {
	return errors.Join(s.Renew(ctx, []driver.Claim{c, c})...)
}

// echoing are servers, each of which answers commands with their arguments, in a way of its own.
var echoing = map[string]func(args []string) string{
	"Redis 7": func(args []string) string {
		var b strings.Builder
		for _, arg := range args[1:] {
			if b.Len() < 128 {
				fmt.Fprintf(&b, "'%.*s' ", 128-b.Len(), arg)
			}
		}
		return fmt.Sprintf("-ERR unknown command '%s', with args beginning with: %s\r\n", args[0], oneLine(b.String()))
	},
	"Redis 5": func(args []string) string {
		return "-ERR unknown command `" + args[0] + "`, with args beginning with: `" + oneLine(strings.Join(args[1:], "`, `")) + "`, \r\n"
	},
	"a proxy": func(args []string) string { return fmt.Sprintf("-NOPERM %q\r\n", args) },
	"the token alone": func(args []string) string {
		return "-" + oneLine(args[len(args)-1]+" "+strings.Join(args[min(3, len(args)):], "")) + "\r\n"
	},
	"not even an error": func(args []string) string { return oneLine(strings.Join(args[max(0, len(args)-8):], " ")) + "\r\n" },
	"a text":            func(args []string) string { return bulk("ERR refused: " + strings.Join(args[min(2, len(args)):], " ")) },
	"texts": func(args []string) string {
		text := bulk("ERR refused: " + strings.Join(args[min(2, len(args)):], " "))
		return "*2\r\n" + text + text
	},
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func oneLine(text string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(text) }

// Servers, and proxies before them, answer a command that they do not know or allow with its
// arguments, in whole or in part. No piece of a token, a hand-off or a place is in an error.
func TestNoErrorHasWhatAServerEchoesOfATokenOrAHandoff(t *testing.T) {
	t.Parallel()
	for server, says := range echoing {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			var answer atomic.Pointer[func([]string) string]
			answer.Store(&says)
			for kind, s := range storesOn(t, &answer) {
				for what, call := range asked {
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					err := call(ctx, s)
					cancel()
					if found := leaked(err, secretToken, secretHandoff, nextToken); found != "" {
						t.Errorf("%s: %s: %q is in %v", kind, what, found, err)
					}
					if err == nil && kind == "scripts" {
						t.Errorf("%s: %s: no error", kind, what)
					}
				}
			}
		})
	}
}

// Commands of many callers travel together: nobody hears of another one's token.
func TestNoErrorHasTheTokenOfAnotherCommandThatWentWithIt(t *testing.T) {
	t.Parallel()
	for server, says := range echoing {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			var answer atomic.Pointer[func([]string) string]
			answer.Store(&says)
			s := storesOn(t, &answer)["scripts"]
			travellingTogether(t, s)
		})
	}
}

func travellingTogether(t *testing.T, s driver.Driver) {
	t.Helper()
	const n = 32
	claims := make([]driver.Claim, n)
	tokens := make([]string, n)
	for i := range claims {
		claims[i] = theClaim()
		claims[i].Token = rand.Text()[:22]
		tokens[i] = claims[i].Token
	}
	crowd(n, func(i int) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, err := range []error{acquireWith(ctx, s, claims[i]), s.Release(ctx, claims[i])} {
			if found := leaked(err, tokens...); found != "" {
				t.Errorf("%q is in %v", found, err)
			}
		}
	})
}

// The first words of what a server says tell what kind of an error it is, and stay.
func TestAnErrorWithoutItsSecretsIsOfTheSameKind(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"READONLY", "LOADING", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "BUSY", "OOM", "NOPERM", "NOAUTH", "MISCONF", "ERR"} {
		says := func(args []string) string {
			return "-" + kind + " not this: " + oneLine(strings.Join(args, " ")) + "\r\n"
		}
		bare := func([]string) string { return "-" + kind + " not this\r\n" }
		var answer atomic.Pointer[func([]string) string]
		for what, s := range storesOn(t, &answer) {
			if kind == "TRYAGAIN" && what == "transactions" {
				continue // it answers only that others were quicker
			}
			ask := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second) // they try again until it ends
				defer cancel()
				return acquireWith(ctx, s, theClaim())
			}
			answer.Store(&says)
			err := ask()
			answer.Store(&bare)
			plain := ask()
			if !redis.HasErrorPrefix(err, kind) && kind != "ERR" || leaked(err, secretToken) != "" || !strings.Contains(err.Error(), "not this") {
				t.Errorf("%s: %s: %v", what, kind, err)
			}
			if errors.Is(err, driver.ErrNotSent) != errors.Is(plain, driver.ErrNotSent) || driver.Explain(err).Nobody != driver.Explain(plain).Nobody ||
				redis.IsPermissionError(err) != redis.IsPermissionError(plain) || redis.IsOOMError(err) != redis.IsOOMError(plain) ||
				redis.IsAuthError(err) != redis.IsAuthError(plain) {
				t.Errorf("%s: %s: judged otherwise than %v: %v", what, kind, plain, err)
			}
		}
	}
}

// FuzzEchoes has servers put a command into their answer in any way, and cut it off anywhere.
func FuzzEchoes(f *testing.F) {
	f.Add(uint8(0), "ERR unknown command: ", "' '", uint16(0), uint16(128), uint8(0))
	f.Add(uint8(0), "", "", uint16(60), uint16(20), uint8(3))
	f.Add(uint8(1), "refused ", "`", uint16(5), uint16(5000), uint8(9))
	f.Add(uint8(2), "ERR \x1f", "\x1f", uint16(70), uint16(9), uint8(12))
	f.Add(uint8(3), "17637516000000", "", uint16(70), uint16(70), uint8(7))
	f.Add(uint8(1), "", " ", uint16(90), uint16(500), uint8(200))
	var answer atomic.Pointer[func([]string) string]
	stores := storesOn(f, &answer)
	names := slices.Sorted(maps.Keys(asked))
	f.Fuzz(func(t *testing.T, form uint8, before, between string, from, length uint16, call uint8) {
		says := func(args []string) string {
			text := strings.Join(args, between)
			text = text[min(int(from), len(text)):]
			text = before + text[:min(int(length), len(text))]
			switch form % 4 {
			case 0:
				return "-" + oneLine(text) + "\r\n"
			case 1:
				return "?" + oneLine(text) + "\r\n"
			case 2:
				return bulk(text)
			default:
				return "*2\r\n" + bulk(text) + bulk(text)
			}
		}
		answer.Store(&says)
		if int(call) >= 2*len(names) {
			travellingTogether(t, stores["scripts"])
			return
		}
		what := names[int(call)%len(names)]
		for kind, s := range stores {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := asked[what](ctx, s)
			cancel()
			if found := leaked(err, secretToken, secretHandoff, nextToken); found != "" {
				t.Errorf("%s: %s: %q is in %v", kind, what, found, err)
			}
		}
	})
}

// leaked returns a piece of a secret, of six characters or more, that an error shows in any way.
func leaked(err error, secrets ...string) string {
	if err == nil {
		return ""
	}
	text := fmt.Sprintf("%v %+v %q %s", err, err, err, err.Error())
	for _, secret := range secrets {
		for i := range len(secret) - 5 {
			if strings.Contains(text, secret[i:i+6]) {
				return secret[i : i+6]
			}
		}
	}
	switch err := err.(type) { //nolint:errorlint // each error of the chain has a look of its own
	case interface{ Unwrap() error }:
		return leaked(err.Unwrap(), secrets...)
	case interface{ Unwrap() []error }:
		for _, part := range err.Unwrap() {
			if found := leaked(part, secrets...); found != "" {
				return found
			}
		}
	}
	return ""
}

// storesOn are Stores of every kind on a server that lets clients and transactions begin, and gives
// every command that counts an answer of its own.
func storesOn(t testing.TB, answer *atomic.Pointer[func([]string) string]) map[string]driver.Driver {
	t.Helper()
	dial := pipes(t, func(conn net.Conn) { echo(conn, answer) })
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	rdb := redis.NewClient(&redis.Options{Protocol: 2, MaxRetries: -1, MaintNotificationsConfig: quiet, Dialer: dial})
	cluster := redis.NewClusterClient(&redis.ClusterOptions{
		Protocol: 2, MaxRedirects: -1, ContextTimeoutEnabled: true, MaintNotificationsConfig: quiet, Dialer: dial,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: "127.0.0.1:1"}}}}, nil
		},
	})
	wait := redislock.WithReplicas(1, time.Millisecond)
	stores := map[string]driver.Driver{
		"scripts": redislock.New(rdb), "replicas": redislock.New(rdb, wait), "transactions": redislock.NewTx(rdb),
		"a cluster": redislock.New(cluster), "a cluster's replicas": redislock.New(cluster, wait),
	}
	t.Cleanup(func() {
		for _, s := range stores {
			if idle, ok := s.(driver.Closer); ok {
				_ = idle.Close(context.WithoutCancel(t.Context())) // nobody answers any more
			}
		}
		_ = errors.Join(rdb.Close(), cluster.Close())
	})
	return stores
}

func echo(conn net.Conn, answer *atomic.Pointer[func([]string) string]) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for {
		args, err := arguments(r)
		if err != nil {
			return
		}
		var reply string
		switch word := strings.ToLower(args[0]); word {
		case "hello", "client":
			reply = "-ERR unknown command\r\n"
		case "subscribe", "ssubscribe":
			reply = "*3\r\n" + bulk(word) + bulk(args[1]) + ":1\r\n"
		case "command":
			reply = "*0\r\n"
		case "watch", "unwatch", "multi":
			reply = "+OK\r\n"
		case "get":
			reply = bulk(secretToken + "\x1fwho")
			if strings.HasSuffix(args[1], "fence") || strings.HasSuffix(args[1], "pay") {
				reply = "$-1\r\n"
			}
		case "pttl", "ttl":
			reply = ":1000\r\n"
		case "time":
			reply = "*2\r\n" + bulk("1763751600") + bulk("0")
		case "exec":
			reply = "-EXECABORT Transaction discarded because of previous errors.\r\n"
		default:
			reply = (*answer.Load())(args)
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

// arguments reads one command.
func arguments(r *bufio.Reader) (args []string, err error) {
	n, err := number(r, "*")
	for range n {
		length, err := number(r, "$")
		if err != nil {
			return nil, err
		}
		arg := make([]byte, length+2)
		if _, err := io.ReadFull(r, arg); err != nil {
			return nil, err
		}
		args = append(args, string(arg[:length]))
	}
	if err == nil && len(args) == 0 {
		err = io.ErrUnexpectedEOF
	}
	return args, err
}

func number(r *bufio.Reader, kind string) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, kind)))
}
