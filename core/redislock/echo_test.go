package redislock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// What no error may have a piece of.
const (
	secretToken   = "kR3vY_q0-ZtBw9XnLm2EaC" //nolint:gosec // G101: nobody's
	secretHandoff = "Jd7sUpG4-oHfTi5cQWzx1"  //nolint:gosec // G101: nobody's
)

// asked are the calls of a Store that a server may refuse.
var asked = map[string]func(ctx context.Context, s driver.Driver) error{
	"acquire":               acquiring(),
	"acquire with dedup":    acquiring(dedups),
	"acquire by a hand-off": acquiring(byHandoff),
	"share":                 acquiring(reader),
	"share a limit":         acquiring(permit),
	"renew":                 renews(),
	"renew shared":          renews(reader),
	"renew limited":         renews(permit),
	"release":               releases(),
	"complete":              releases(dedups),
	"keep":                  releases(kept, dedups),
	"detach":                releases(kept, byHandoff),
	"part":                  releases(reader, dedups),
	"wait":                  waits(),
	"stand":                 waits(dedups),
	"leave": func(ctx context.Context, s driver.Driver) error {
		_ = waits(reader)(ctx, s) // it may be in the queue now
		return releases(reader)(ctx, s)
	},
	"acquire at a node": func(ctx context.Context, s driver.Driver) error {
		if n, ok := s.(ranked.Node); ok {
			_, err := n.AcquireRanked(ctx, ranked.Claim{Claim: theClaim(), Rank: 1, Floor: 1})
			return err
		}
		return nil
	},
	"wait at a node": func(ctx context.Context, s driver.Driver) error {
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if n, ok := s.(ranked.Node); ok {
			return n.WaitRanked(ctx, ranked.Claim{Claim: theClaim(), Rank: 1, Floor: 1})
		}
		return nil
	},
	"inspect": func(ctx context.Context, s driver.Driver) error {
		_, err := s.(inspect.Inspector).Inspect(ctx, "name")
		return err
	},
}

func theClaim(opts ...func(*driver.Claim)) driver.Claim {
	return with(driver.Claim{Name: "name", Token: secretToken, TTL: 3 * time.Second, Label: "who"}, opts...)
}

func byHandoff(c *driver.Claim) { c.Handoff = secretHandoff }

func acquireWith(ctx context.Context, s driver.Driver, c driver.Claim) error {
	_, err := s.Acquire(ctx, c)
	return err
}

func acquiring(opts ...func(*driver.Claim)) func(context.Context, driver.Driver) error {
	return func(ctx context.Context, s driver.Driver) error { return acquireWith(ctx, s, theClaim(opts...)) }
}

func renews(opts ...func(*driver.Claim)) func(context.Context, driver.Driver) error {
	return func(ctx context.Context, s driver.Driver) error {
		return errors.Join(s.Renew(ctx, []driver.Claim{theClaim(opts...), theClaim(opts...)})...)
	}
}

func releases(opts ...func(*driver.Claim)) func(context.Context, driver.Driver) error {
	return func(ctx context.Context, s driver.Driver) error { return s.Release(ctx, theClaim(opts...)) }
}

func waits(opts ...func(*driver.Claim)) func(context.Context, driver.Driver) error {
	return func(ctx context.Context, s driver.Driver) error {
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_, err := s.Wait(ctx, theClaim(opts...))
		return err
	}
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
	"any piece of it": func(args []string) string {
		text := oneLine(strings.Join(args, []string{" ", "`, `", "' '", "\x1f", ""}[mathrand.IntN(5)]))
		text = text[mathrand.IntN(len(text)):]
		return []string{"-", "-ERR ", "?", "-NOPERM '"}[mathrand.IntN(4)] + text[:mathrand.IntN(len(text)+1)] + "\r\n"
	},
	"a text": func(args []string) string { return bulk("ERR refused: " + strings.Join(args[min(2, len(args)):], " ")) },
	"texts": func(args []string) string {
		text := bulk("ERR refused: " + strings.Join(args[min(2, len(args)):], " "))
		return "*2\r\n" + text + text
	},
}

// Servers, and proxies before them, answer a command that they do not know or allow with its
// arguments, in whole or in part. No piece of a token, a hand-off or a place is in an error.
func TestNoErrorHasWhatAServerEchoesOfATokenOrAHandoff(t *testing.T) {
	t.Parallel()
	for server, says := range echoing {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			for kind, s := range serve(t, lenient(says)).stores(t) {
				for what, call := range asked {
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					err := call(ctx, s)
					cancel()
					if found := leaked(err, secretToken, secretHandoff); found != "" {
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
			travellingTogether(t, serve(t, lenient(says)).stores(t)["scripts"])
		})
	}
}

func travellingTogether(t *testing.T, s driver.Driver) {
	t.Helper()
	tokens := make([]string, 32)
	for i := range tokens {
		tokens[i] = rand.Text()[:22]
	}
	crowd(len(tokens), func(i int) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c := theClaim()
		c.Token = tokens[i]
		for _, err := range []error{acquireWith(ctx, s, c), s.Release(ctx, c)} {
			if found := leaked(err, tokens...); found != "" {
				t.Errorf("%q is in %v", found, err)
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

// FuzzScriptReplies has a server answer every script with something else than what the scripts
// answer. Nobody gets a lease of that which core could not count with.
func FuzzScriptReplies(f *testing.F) {
	f.Add(uint8(0), uint8(0), "", int64(1763751600000000), int64(0))
	f.Add(uint8(0), uint8(1), "", int64(0), int64(0))
	f.Add(uint8(1), uint8(0), "1763751600000000", int64(0), int64(0))
	f.Add(uint8(1), uint8(0), "1763751600000000 32", int64(0), int64(0))
	f.Add(uint8(1), uint8(2), "1763751600000000 0", int64(0), int64(0))
	f.Add(uint8(2), uint8(0), "label", int64(0), int64(0))
	f.Add(uint8(3), uint8(0), "label", int64(900), int64(0))
	f.Add(uint8(4), uint8(3), "", int64(900), int64(2))
	f.Add(uint8(5), uint8(0), "", int64(0), int64(0))
	f.Add(uint8(6), uint8(0), "OOM command not allowed", int64(0), int64(0))
	f.Add(uint8(7), uint8(0), "", int64(1), int64(0))
	server := serve(f, nil)
	o := hasty(server.addr)
	o.PoolSize, o.MaxRetries = 1, -1
	store := redislock.New(dial(f, o))
	f.Fuzz(func(t *testing.T, form, kind uint8, text string, a, b int64) {
		reply := resp(form, text, a, b)
		server.says(func(words []string) string {
			if strings.HasPrefix(words[0], "eval") {
				return reply
			}
			return "-ERR unknown command\r\n"
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c := driver.Claim{Name: "name", Token: strings.Repeat("x", 22), TTL: time.Second, Fences: 1}
		switch kind % 4 {
		case 1:
			c.Fences = 32
		case 2:
			c.Limit = driver.Readers
		case 3:
			c.Limit = 3
		}
		g, err := store.Acquire(ctx, c)
		held, isHeld := errors.AsType[*driver.Held](err)
		switch {
		case err == nil && (g.Fence > 1<<53 || g.Fences < 0 || g.Fences > 256 || g.Limit < 0):
			t.Errorf("%q is a grant: %+v", reply, g)
		case err == nil && kind%4 < 2 && g.Fence == 0:
			t.Errorf("%q is a grant without a fence", reply)
		case isHeld && (held.Remaining < 0 || held.Limit < 0):
			t.Errorf("%q is held: %+v", reply, held)
		}
		if errs := store.Renew(ctx, []driver.Claim{c}); len(errs) != 1 || errs[0] == nil && reply != ":1\r\n" && reply != "*1\r\n:1\r\n" {
			t.Errorf("%q renews: %v", reply, errs)
		}
		if err := store.Release(ctx, c); err == nil && !strings.HasPrefix(reply, ":1\r\n") && reply != "*1\r\n:1\r\n" {
			t.Errorf("%q releases", reply)
		}
	})
}

// resp is a reply of some form.
func resp(form uint8, text string, a, b int64) string {
	switch form % 9 {
	case 0:
		return fmt.Sprintf(":%d\r\n", a)
	case 1:
		return bulk(text)
	case 2:
		return "*1\r\n" + bulk(text)
	case 3:
		return fmt.Sprintf("*2\r\n%s:%d\r\n", bulk(text), a)
	case 4:
		return fmt.Sprintf("*4\r\n%s:%d\r\n:%d\r\n:%d\r\n", bulk(text), a, b, b)
	case 5:
		return "$-1\r\n"
	case 6:
		return "-" + oneLine(text) + "\r\n"
	case 7:
		return fmt.Sprintf("*1\r\n:%d\r\n", a)
	default:
		return "*0\r\n"
	}
}
