package servers

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"
)

// Etcd starts an etcd of one member that belongs to the test, and ends with it. What it is
// told survives a restart, as etcd does.
//
// args are added to its command line, such as "--quota-backend-bytes", "1000000".
func Etcd(tb testing.TB, args ...string) *Server {
	tb.Helper()
	p := etcdProduct(args)
	return start(tb, "etcd", p, Find(tb, p.binary, p.debianPackage), tb.TempDir())
}

func etcdProduct(extra []string) product {
	return product{
		binary:        "etcd",
		debianPackage: "etcd-server",
		args: func(port int, dir string) []string {
			client := "http://127.0.0.1:" + strconv.Itoa(port)
			peer := "unix://localhost:" + strconv.Itoa(port) // a file in dir: nobody else has to be told
			return append([]string{
				"--data-dir", dir, "--unsafe-no-fsync",
				"--listen-client-urls", client, "--advertise-client-urls", client,
				"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
				"--initial-cluster", "default=" + peer,
			}, extra...)
		},
		ready: etcdReady,
	}
}

// etcdReady is nil once the server has a leader. Its log must say so too, as for Redis.
func etcdReady(addr string, log []byte) error {
	if !bytes.Contains(log, []byte("became leader")) {
		return errors.New("it has no leader")
	}
	return etcdHealth(addr)
}

// etcdHealth is nil if the server has a leader.
func etcdHealth(addr string) error {
	answer, err := askLine(addr, "GET /health HTTP/1.0\r\n\r\n")
	if err == nil && !strings.Contains(answer, " 200 ") {
		err = errors.New(answer)
	}
	return err
}
