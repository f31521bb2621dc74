package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ZooKeeperEnsemble starts a ZooKeeper of three servers that belongs to the test, and ends with it. It returns
// once all serve. With two of them it goes on. They notice within about two seconds that one of them is gone.
//
// link, unless it is nil, is told each address at which a server is to reach another one, and returns the one that it
// uses instead: that of a proxy, perhaps. Servers count from 0.
func ZooKeeperEnsemble(tb testing.TB, link func(from, to int, addr string) string) []*Server {
	tb.Helper()
	ports := freePorts(tb, 2*clusterOf)
	if link == nil {
		return launchAll(tb, func(i int) product { return zooKeeperMember(tb, i, peersOf(i, ports, direct)) })
	}
	return launchAll(tb, func(i int) product {
		p := zooKeeperMember(tb, i, peersOf(i, ports, link))
		prepare := p.prepare
		p.prepare = func(port int, dir string) error {
			if i > 0 { // a server that comes looks for those before it, who may not be able to dial it
				if err := awaitPort(ports[2*i-1]); err != nil {
					return err
				}
			}
			return prepare(port, dir)
		}
		return p
	})
}

func direct(_, _ int, addr string) string { return addr }

// awaitPort returns once a port accepts connections.
func awaitPort(port int) error {
	for deadline := time.Now().Add(readyBound); ; time.Sleep(10 * time.Millisecond) {
		if err := accepts("127.0.0.1:" + strconv.Itoa(port)); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// peersOf are the lines of server i's configuration that say where the servers are: each has a port for its
// followers, and one for elections.
func peersOf(i int, ports []int, link func(from, to int, addr string) string) string {
	var lines strings.Builder
	lines.WriteString("initLimit=20\nsyncLimit=5\n")
	for j := range clusterOf {
		var at [2]string
		for k, port := range ports[2*j : 2*j+2] {
			addr := "127.0.0.1:" + strconv.Itoa(port)
			if i != j {
				addr = link(i, j, addr)
			}
			_, at[k], _ = strings.Cut(addr, ":")
		}
		fmt.Fprintf(&lines, "server.%d=127.0.0.1:%s:%s\n", j+1, at[0], at[1])
	}
	return lines.String()
}

func zooKeeperMember(tb testing.TB, i int, peers string) product {
	tb.Helper()
	p := zooKeeperProduct(tb)
	run := zooKeeperArgs("quorum.QuorumPeerMain")
	p.args = func(port int, dir string) []string { // who looks for a leader asks at least once a second, not once a minute
		return append([]string{"-Dzookeeper.fastleader.maxNotificationInterval=1000"}, run(port, dir)...)
	}
	p.prepare = func(port int, dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "myid"), []byte(strconv.Itoa(i+1)), 0o600); err != nil {
			return err
		}
		return zooKeeperPrepare(port, dir, peers)
	}
	p.says = []string{"Peer state changed: leading - broadcast", "Peer state changed: following - broadcast"}
	return p
}
