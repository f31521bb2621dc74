package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// ask sends one command to a Redis server that wants no password, and returns its reply: a
// string, an int64, a []any, or nil.
func ask(addr string, args ...string) (any, error) { return askAs("", addr, args...) }

// askAs sends a password first, unless that is empty.
func askAs(password, addr string, args ...string) (any, error) {
	const bound = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close() // nothing is left unsent
	if err := conn.SetDeadline(time.Now().Add(bound)); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	if password != "" {
		if _, err := exchange(conn, r, "AUTH", password); err != nil {
			return nil, err
		}
	}
	reply, err := exchange(conn, r, args...)
	if err != nil {
		return nil, fmt.Errorf("%s on %s: %w", args[0], addr, err)
	}
	return reply, nil
}

func exchange(conn net.Conn, r *bufio.Reader, args ...string) (any, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		return nil, err
	}
	return readReply(r)
}

// readReply reads one reply of RESP2. The server's errors come back as errors.
func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSpace(line)
	if line == "" {
		return nil, errors.New("an empty line is no reply")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, errors.New(rest)
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	}
	n, err := strconv.Atoi(rest)
	switch {
	case err != nil, kind != '$' && kind != '*':
		return nil, fmt.Errorf("unknown reply %q", line)
	case n < 0:
		return nil, nil
	case kind == '$':
		text := make([]byte, n+len("\r\n"))
		_, err = io.ReadFull(r, text)
		return string(text[:n]), err
	}
	all := make([]any, n)
	for i := range all {
		if all[i], err = readReply(r); err != nil {
			return nil, err
		}
	}
	return all, nil
}
