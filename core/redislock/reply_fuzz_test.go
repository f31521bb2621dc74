package redislock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

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
	var says atomic.Pointer[string]
	rdb := redis.NewClient(&redis.Options{
		Protocol: 2, PoolSize: 1, MaxRetries: -1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Dialer:                   pipes(f, func(conn net.Conn) { answer(conn, &says) }),
	})
	f.Cleanup(func() { _ = rdb.Close() })
	store := redislock.New(rdb)
	f.Fuzz(func(t *testing.T, form, kind uint8, text string, a, b int64) {
		reply := resp(form, text, a, b)
		says.Store(&reply)
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
	bulk := fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
	switch form % 9 {
	case 0:
		return fmt.Sprintf(":%d\r\n", a)
	case 1:
		return bulk
	case 2:
		return "*1\r\n" + bulk
	case 3:
		return fmt.Sprintf("*2\r\n%s:%d\r\n", bulk, a)
	case 4:
		return fmt.Sprintf("*4\r\n%s:%d\r\n:%d\r\n:%d\r\n", bulk, a, b, b)
	case 5:
		return "$-1\r\n"
	case 6:
		return "-" + strings.NewReplacer("\r", " ", "\n", " ").Replace(text) + "\r\n"
	case 7:
		return fmt.Sprintf("*1\r\n:%d\r\n", a)
	default:
		return "*0\r\n"
	}
}

// answer gives every script the same reply, and knows no other command.
func answer(conn net.Conn, says *atomic.Pointer[string]) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for {
		word, err := command(r)
		if err != nil {
			return
		}
		reply := "-ERR unknown command\r\n"
		if strings.HasPrefix(word, "eval") {
			reply = *says.Load()
		}
		if _, err := conn.Write([]byte(reply)); err != nil {
			return
		}
	}
}
