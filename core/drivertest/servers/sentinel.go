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

const (
	sentinels     = 3
	sentinelBound = 60 * time.Second // to agree on a master, on a loaded machine
)

// MasterName is what the Sentinels of [Sentinel] call their master.
const MasterName = "main"

// RedisSentinel is a master with a replica, and three Sentinels that watch over them. It
// belongs to a test.
//
// A master of which nothing is heard for two seconds is replaced.
type RedisSentinel struct {
	tb        testing.TB
	Nodes     []*Server // the first is the master, at the start
	Sentinels []*Server
	password  string
}

// Sentinel starts servers and Sentinels that want a password, all the same one, and returns
// once they know each other. args are added to the command line of the servers; see [Redis].
func Sentinel(tb testing.TB, password string, args ...string) *RedisSentinel {
	tb.Helper()
	s := &RedisSentinel{tb: tb, password: password}
	args = append([]string{
		"--requirepass", password, "--masterauth", password, "--repl-diskless-sync-delay", "0",
	}, args...)
	master := Redis(tb, args...)
	host, port, _ := strings.Cut(master.Announced(), ":")
	s.Nodes = []*Server{master, Redis(tb, append(args, "--replicaof", host, port)...)}
	for range sentinels {
		s.Sentinels = append(s.Sentinels, s.sentinel(master, args))
	}
	for _, watcher := range s.Sentinels {
		await(tb, sentinelBound, "the Sentinels know all", func() error { return s.complete(watcher) })
	}
	return s
}

// hostAndPort is where others reach a server, as Redis wants it.
func hostAndPort(s *Server) string { return strings.Replace(s.Announced(), ":", " ", 1) }

func (s *RedisSentinel) sentinel(master *Server, args []string) *Server {
	s.tb.Helper()
	p := redisProduct(args)
	p.args = func(port int, dir string) []string {
		own := []string{
			filepath.Join(dir, "sentinel.conf"), "--sentinel",
			"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--logfile", "", "--daemonize", "no",
		}
		return append(append(own, onlyTLS(args)...), tlsArgs(args, port)...)
	}
	p.fill = func(_, dir string, _ *os.File) error { // a Sentinel writes down there what it learns
		lines := fmt.Sprintf("requirepass %s\nsentinel sentinel-pass %[1]s\nsentinel monitor %s %s 2\n"+
			"sentinel auth-pass %[2]s %[1]s\nsentinel down-after-milliseconds %[2]s 2000\nsentinel failover-timeout %[2]s 10000\n",
			s.password, MasterName, hostAndPort(master))
		return os.WriteFile(filepath.Join(dir, "sentinel.conf"), []byte(lines), 0o600)
	}
	p.says = []string{"Sentinel ID is "}
	return start(s.tb, p)
}

// complete is nil once a Sentinel knows the others, and a replica that is in step.
func (s *RedisSentinel) complete(watcher *Server) error {
	reply, err := askAs(s.password, watcher.Addr(), "SENTINEL", "MASTER", MasterName)
	if err != nil {
		return err
	}
	master := fields(reply)
	if master["num-other-sentinels"] != strconv.Itoa(sentinels-1) || master["num-slaves"] != "1" {
		return fmt.Errorf("it knows %v", master)
	}
	reply, err = askAs(s.password, watcher.Addr(), "SENTINEL", "REPLICAS", MasterName)
	if err != nil {
		return err
	}
	for _, r := range reply.([]any) {
		if link := fields(r)["master-link-status"]; link != "ok" {
			return fmt.Errorf("the link of the replica is %q", link)
		}
	}
	return nil
}

// Addrs are the addresses of the Sentinels.
func (s *RedisSentinel) Addrs() []string {
	addrs := make([]string, len(s.Sentinels))
	for i, w := range s.Sentinels {
		addrs[i] = w.Addr()
	}
	return addrs
}

// AwaitMaster returns once all Sentinels call n the master, and n itself does.
func (s *RedisSentinel) AwaitMaster(n *Server) {
	s.tb.Helper()
	await(s.tb, sentinelBound, "the failover", func() error {
		role, err := askAs(s.password, n.Addr(), "INFO", "replication")
		if err != nil {
			return err
		}
		if !strings.Contains(fmt.Sprint(role), "role:master") {
			return fmt.Errorf("%s is a replica", n.Addr())
		}
		for _, w := range s.Sentinels {
			reply, err := askAs(s.password, w.Addr(), "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
			if err != nil {
				return err
			}
			if fmt.Sprint(reply) != "["+hostAndPort(n)+"]" {
				return fmt.Errorf("the master is %v", reply)
			}
		}
		return nil
	})
}

// fields reads a flat list of names and values.
func fields(reply any) map[string]string {
	list, _ := reply.([]any)
	m := make(map[string]string)
	for i := 0; i+1 < len(list); i += 2 {
		m[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
	}
	return m
}
