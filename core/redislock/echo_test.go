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
	"not even an error": func(args []string) string { return oneLine(strings.Join(args[max(0, len(args)-3):], " ")) + "\r\n" },
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
// arguments, in whole or in part. No piece of a token, a hand-off or a place is in an error, nor of the token of
// another command that has gone with it.
func TestNoErrorHasWhatAServerEchoesOfATokenOrAHandoff(t *testing.T) {
	t.Parallel()
	for server, says := range echoing {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			stores := serve(t, lenient(says)).stores(t)
			for kind, s := range stores {
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
			tokens, claims := make([]string, 32), make([]driver.Claim, 32)
			for i := range tokens {
				tokens[i] = rand.Text()[:22]
				claims[i] = claim(fmt.Sprint("name-", i), tokens[i])
			}
			for _, err := range stores["by slots"].Renew(t.Context(), claims) { // a command each, in one round trip
				if found := leaked(err, tokens...); found != "" {
					t.Errorf("%q is in %v", found, err)
				}
			}
		})
	}
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
