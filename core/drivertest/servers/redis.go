package servers

import (
	"context"
	"net"
	"os"
	"slices"
	"strconv"
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
	return start(tb, redisProduct(args))
}

func redisProduct(extra []string) product {
	return product{
		binary:        "redis-server",
		debianPackage: "redis-server",
		path:          os.Getenv(RedisEnv),
		tls:           slices.Contains(extra, certFile),
		args: func(port int, dir string) []string {
			args := []string{"--save", "", "--appendonly", "no", "--loglevel", "notice", "--bind", "127.0.0.1"}
			args = append(append(args, extra...), tlsArgs(extra, port)...)
			return append(args, "--port", strconv.Itoa(port), "--dir", dir,
				"--logfile", "", "--daemonize", "no") // of a repeated option the last one counts
		},
		says: []string{"Ready to accept connections", "Thread 0 alive", "AcceptServer - listening"}, // the latter ones are KeyDB's and Dragonfly's
	}
}

// accepts is nil if somebody accepts connections.
func accepts(addr string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", addr)
	if err == nil {
		err = conn.Close()
	}
	return err
}
