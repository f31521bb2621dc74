package servers

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// clusterOf is how many servers a cluster has: with two of them it goes on.
const clusterOf = 3

// EtcdCluster starts an etcd of three members that belongs to the test, and ends with it. It
// returns once all serve. With two of them it goes on.
func EtcdCluster(tb testing.TB) []*Server {
	tb.Helper()
	path := Find(tb, "etcd", "etcd-server")
	peers, err := freePorts(tb, clusterOf)
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	return launchAll(tb, path, func(i int) product { return etcdMember(i, peers) })
}

// launchAll starts the members of a cluster at the same time, since a member serves once it has found a majority.
func launchAll(tb testing.TB, path string, member func(i int) product) []*Server {
	tb.Helper()
	members := make([]*Server, clusterOf)
	errs := make([]error, clusterOf)
	var starting sync.WaitGroup
	for i := range members {
		root, p := tb.TempDir(), member(i)
		starting.Go(func() { members[i], errs[i] = launch(tb, p, path, root) })
	}
	starting.Wait()
	for _, m := range members {
		if m != nil {
			tb.Cleanup(m.Kill) // there is nothing to save
		}
	}
	if err := errors.Join(errs...); err != nil {
		tb.Fatalf("servers: %v", err)
	}
	return members
}

// etcdMember is one of those whose peers listen at the given ports.
func etcdMember(i int, peers []int) product {
	url := func(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }
	name := func(i int) string { return fmt.Sprint("member-", i) }
	all := make([]string, len(peers))
	for j, port := range peers {
		all[j] = name(j) + "=" + url(port)
	}
	return product{
		binary:        "etcd",
		debianPackage: "etcd-server",
		args: func(port int, dir string) []string {
			return []string{
				"--name", name(i), "--data-dir", dir, "--unsafe-no-fsync",
				"--listen-client-urls", url(port), "--advertise-client-urls", url(port),
				"--listen-peer-urls", url(peers[i]), "--initial-advertise-peer-urls", url(peers[i]),
				"--initial-cluster", strings.Join(all, ","),
			}
		},
		ready: func(addr string, log []byte) error {
			if !strings.Contains(string(log), "ready to serve client requests") {
				return errors.New("it does not serve yet")
			}
			return etcdHealth(addr)
		},
	}
}

// freePorts are n ports.
func freePorts(tb testing.TB, n int) (ports []int, err error) {
	tb.Helper()
	for range n {
		port, err := freePort(tb)
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
