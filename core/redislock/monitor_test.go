package redislock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// Some servers refuse a key that a call of a script does not declare. Redis does not, but MONITOR shows
// which keys the commands in a script use.
func TestScriptsUseNoKeyThatTheirCallDoesNotDeclare(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	lines := monitored(t, server.Addr())
	x, rdb := newLacker(t, server.Addr(), "object", minimalACL) // which nothing needs
	x.store = redislock.New(rdb, redislock.WithPrefix(x.prefix))
	t.Cleanup(func() { ok(t, x.store.Close(context.WithoutCancel(t.Context()))) })
	x.driver = x.store
	for i, d := range deeds() {
		x.what, x.name = d.what, fmt.Sprint("name-", i)
		x.try(d)
	}
	x.many()
	ok(t, x.admin.Echo(t.Context(), "the end").Err())
	var declared []string
	calls, inside := 0, 0
	for {
		source, args := monitorLine(t, lines)
		switch {
		case args[0] == "echo":
			if calls < 100 || inside < 500 {
				t.Errorf("%d calls with %d commands", calls, inside)
			}
			return
		case strings.HasPrefix(args[0], "eval"):
			n, err := strconv.Atoi(args[2])
			ok(t, err)
			declared = args[3 : 3+n]
			calls++
		case strings.HasSuffix(source, " lua"):
			inside++
			for _, key := range keysOf(args) {
				if !slices.Contains(declared, key) {
					t.Errorf("%q uses %q; declared are %q", args[0], key, declared)
				}
			}
		}
	}
}

// keysOf are the keys of a command that scripts call.
func keysOf(args []string) []string {
	switch args[0] {
	case "time", "publish", "spublish":
		return nil
	case "exists", "del":
		return args[1:]
	}
	return args[1:2]
}

// monitored returns what the server says of each command from now on.
func monitored(t *testing.T, addr string) *bufio.Reader {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	ok(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, "MONITOR\r\n")
	ok(t, err)
	lines := bufio.NewReaderSize(conn, 1<<20)
	if line, err := lines.ReadString('\n'); line != "+OK\r\n" {
		t.Fatalf("MONITOR: %q, %v", line, err)
	}
	return lines
}

// monitorLine reads a line: +1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
func monitorLine(t *testing.T, lines *bufio.Reader) (source string, args []string) {
	t.Helper()
	line, err := lines.ReadString('\n')
	ok(t, err)
	_, line, _ = strings.Cut(strings.TrimRight(line, "\r\n"), " [")
	source, words, _ := strings.Cut(line, "] ")
	if strings.HasPrefix(words, `"eval" "`) { // Valkey 8.1 does not escape the quotes in a script
		_, rest, _ := strings.Cut(words[strings.LastIndex(words, `\n" "`):], " ")
		words = `"eval" "" ` + rest
	}
	for words != "" {
		quoted, err := strconv.QuotedPrefix(words)
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		arg, err := strconv.Unquote(quoted)
		ok(t, err)
		args = append(args, arg)
		words = strings.TrimPrefix(words[len(quoted):], " ")
	}
	args[0] = strings.ToLower(args[0])
	return source, args
}
