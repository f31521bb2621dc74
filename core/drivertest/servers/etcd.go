package servers

import (
	"strconv"
	"testing"
)

// Etcd starts an etcd of one member that belongs to the test, and ends with it. What it is
// told survives a restart, as etcd does.
//
// args are added to its command line, such as "--quota-backend-bytes", "1000000".
func Etcd(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return start(tb, etcdProduct(args))
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
		says: []string{"ready to serve client requests"},
	}
}
