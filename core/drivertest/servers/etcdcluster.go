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
	peers := freePorts(tb, clusterOf)
	return launchAll(tb, func(i int) product { return etcdMember(i, peers) })
}

// launchAll starts the members of a cluster at the same time, since a member serves once it has found a majority.
func launchAll(tb testing.TB, member func(i int) product) []*Server {
	tb.Helper()
	path := member(0).find(tb)
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
	return etcdProduct([]string{
		"--name", name(i), "--listen-peer-urls", url(peers[i]), "--initial-advertise-peer-urls", url(peers[i]),
		"--initial-cluster", strings.Join(all, ","),
	}) // of a repeated option the last one counts
}

// freePorts are n ports.
func freePorts(tb testing.TB, n int) []int {
	tb.Helper()
	ports := make([]int, n)
	for i := range ports {
		var err error
		if ports[i], err = freePort(tb); err != nil {
			tb.Fatalf("servers: %v", err)
		}
	}
	return ports
}
