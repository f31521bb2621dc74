//go:build linux

package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Command is one command that the server has executed, as MONITOR tells.
type Command struct {
	At     int64  // of now: when it began
	Since  int64  // from when on a TTL counts that it sets: of a command inside a script, since that began
	Client string // the connection's name; of a command inside a script that of its caller
	Script int    // of a command inside a script: the number of the call, from 1
	Caller []string
	Args   []string
}

// operators says that it is the run's own.
func (c Command) operators() bool { return c.Client == operator }

// owns says whether whose command it is may renew and free a reign. Of one that is not in a script
// only the process is known: it has looked at the token before, in the same transaction.
func (c Command) owns(r *Grant) bool {
	if c.Script == 0 {
		return r.Worker == c.Client
	}
	return r.Token != "" && carries(c, r.Token)
}

// monitor keeps what the server says of every command.
type monitor struct {
	conn net.Conn
	done chan struct{}

	mu       sync.Mutex // protects what follows
	commands []Command
	names    map[string]string // of connections, by address
	calls    int
	last     Command
	failed   error
}

// watch begins to listen. It returns once every command that follows will be seen.
func watch(addr string, before *monitor) (*monitor, error) {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, "MONITOR\r\n"); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(conn, 1<<20)
	if ok, err := r.ReadString('\n'); err != nil || ok != "+OK\r\n" {
		return nil, fmt.Errorf("MONITOR: %q, %w", ok, err)
	}
	m := &monitor{conn: conn, done: make(chan struct{}), names: make(map[string]string)}
	if before != nil { // of a server that has been restarted
		m.commands, m.calls, m.failed = before.commands, before.calls, before.failed
	}
	go func() {
		defer close(m.done)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			m.note(strings.TrimSuffix(line, "\r\n"))
		}
	}()
	return m, nil
}

// stop ends it. What it has seen stays.
func (m *monitor) stop() []Command {
	_ = m.conn.Close()
	<-m.done
	return m.commands
}

var errMonitorLine = errors.New("a line of MONITOR cannot be read")

// note reads a line: +1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
func (m *monitor) note(line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stamp, rest, ok := strings.Cut(strings.TrimPrefix(line, "+"), " [")
	source, words, ok2 := strings.Cut(rest, "] ")
	wall, err := strconv.ParseFloat(stamp, 64)
	if !ok || !ok2 || err != nil || len(words) < 2 || words[0] != '"' || words[len(words)-1] != '"' {
		m.failed = fmt.Errorf("%w: %.100q", errMonitorLine, line)
		return
	}
	args := unquote(words)
	args[0] = strings.ToLower(args[0])
	_, addr, _ := strings.Cut(source, " ")
	at := fromWall(wall)
	c := Command{At: at, Since: at, Args: args}
	if addr == "lua" {
		c.Client, c.Script, c.Caller, c.Since = m.last.Client, m.calls, m.last.Args, m.last.At
		c.At = max(c.At, c.Since) // a virtual machine's clock goes back by microseconds
		m.commands = append(m.commands, c)
		return
	}
	for i, word := range args[:len(args)-1] {
		if (args[0] == "hello" || args[0] == "client") && strings.EqualFold(word, "setname") {
			m.names[addr] = args[i+1]
		}
	}
	c.Client = m.names[addr]
	if strings.HasPrefix(args[0], "eval") {
		m.calls++
		c.Script = m.calls
	}
	m.last = c
	m.commands = append(m.commands, c)
}

// unquote reads the words of a command. Valkey 8.1 escapes neither quotes nor backslashes in those of an EVAL; none of ours has quotes
// around a blank, nor has anything else that a run sends, and only scripts have backslashes.
func unquote(words string) []string {
	args := strings.Split(words[1:len(words)-1], `" "`)
	for i, arg := range args {
		plain, err := strconv.Unquote(`"` + arg + `"`)
		if err != nil {
			plain, err = strconv.Unquote(`"` + strings.ReplaceAll(arg, `"`, `\"`) + `"`)
		}
		if err == nil {
			args[i] = plain
		}
	}
	return args
}

// fromWall turns the server's clock, which is the machine's, into now's. The two are read in
// one go: if this process is put aside in between, they are read again.
func fromWall(wall float64) int64 {
	const ns, apart = 1e9, int64(100 * time.Microsecond)
	for {
		mine, walls := now(), time.Now().UnixNano()
		if now()-mine < apart {
			return mine + int64(wall*ns) - walls
		}
	}
}
