package servers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisEnv is the environment variable with the path of the server to start instead of the redis-server
// on the PATH: of another version, or another product that takes its options, such as valkey-server.
const RedisEnv = "HOLDFAST_REDIS_SERVER"

// Redis starts a redis-server that belongs to the test, and ends with it. It keeps nothing
// on disk unless args say so.
//
// args are added to its command line, such as "--maxmemory", "1mb". The port, the directory
// and the log file are not theirs to set. With "--bind" among them, the first address is to be
// 127.0.0.1. The log level may be raised, not lowered. With "--tls-cert-file" among them, which takes "--tls-key-file" and
// "--tls-ca-cert-file" too, the server speaks TLS at [Server.TLSAddr], to clients that have a
// certificate, and with other servers. At [Server.Addr] it goes on to speak without.
func Redis(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return startRedis(tb, redisProduct(args))
}

func startRedis(tb testing.TB, p product) *Server {
	tb.Helper()
	return start(tb, "redis-server", p, redisBinary(tb, p), tb.TempDir())
}

// redisBinary is the path of the server to start.
func redisBinary(tb testing.TB, p product) string {
	tb.Helper()
	if path := os.Getenv(RedisEnv); path != "" {
		return path
	}
	return Find(tb, p.binary, p.debianPackage)
}

func redisProduct(extra []string) product {
	return product{
		binary:        "redis-server",
		debianPackage: "redis-server",
		tls:           slices.Contains(extra, certFile),
		args: func(port int, dir string) []string {
			args := []string{"--save", "", "--appendonly", "no", "--loglevel", "notice", "--bind", "127.0.0.1"}
			args = append(append(args, extra...), tlsArgs(extra, port)...)
			return append(args, "--port", strconv.Itoa(port), "--dir", dir,
				"--logfile", "", "--daemonize", "no") // of a repeated option the last one counts
		},
		ready: redisReady,
	}
}

// redisReady is nil once the server answers a PING. Its log must say so too: the one that
// answers may be another server, which has taken the port a moment before.
func redisReady(addr string, log []byte) error {
	says := func(words string) bool { return bytes.Contains(log, []byte(words)) }
	if !says("Ready to accept connections") && !says("Thread 0 alive") && !says("AcceptServer - listening") { // KeyDB, Dragonfly
		return errors.New("it does not accept connections yet")
	}
	answer, err := ping(addr)
	if err == nil && strings.HasPrefix(answer, "-LOADING") {
		err = errors.New(answer)
	}
	return err // any other answer, such as -NOAUTH, comes from a server at work
}

// ping is the first line of a Redis server's answer to PING.
func ping(addr string) (string, error) { return askLine(addr, "PING\r\n") }

// askLine is the first line of a server's answer.
func askLine(addr, question string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close() // nothing is left unsent
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, question); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.TrimSpace(question), err)
	}
	return strings.TrimSpace(line), nil
}
