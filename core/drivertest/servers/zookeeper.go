package servers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The jars that run the server, which know the others that they need.
const (
	zooKeeperJar = "/usr/share/java/zookeeper.jar"
	zooKeeperLog = "/usr/share/java/slf4j-simple.jar"
)

// ZooKeeperTick is the tick of the servers that [ZooKeeper] starts. They agree to sessions of
// 2 to 200 ticks.
const ZooKeeperTick = 200 * time.Millisecond

// ZooKeeper starts a standalone ZooKeeper that belongs to the test, and ends with it. It
// needs the Java packages of Debian. What it is told survives a restart, as ZooKeeper does.
func ZooKeeper(tb testing.TB) *Server {
	tb.Helper()
	p := zooKeeperProduct()
	path := Find(tb, p.binary, p.debianPackage)
	if _, err := os.Stat(zooKeeperJar); err != nil {
		missing(tb, err, "libzookeeper-java")
	}
	s, err := launch(tb, p, path, tb.TempDir())
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	tb.Cleanup(func() {
		s.Kill() // there is nothing to save
		if tb.Failed() {
			tb.Logf("log of ZooKeeper on %s:\n%s", s.Addr(), s.Log())
		}
	})
	return s
}

func zooKeeperProduct() product {
	config := func(dir string) string { return filepath.Join(dir, "zoo.cfg") }
	return product{
		binary:        "java",
		debianPackage: "default-jre-headless",
		args: func(_ int, dir string) []string {
			return []string{
				"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", // a small server, and a quick start
				"-Dznode.container.checkIntervalMs=1000",                                       // once a minute would be too seldom to wait for
				"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=error", // clients come and go
				"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.ZooKeeperServer=error",
				"-cp", zooKeeperJar + ":" + zooKeeperLog,
				"org.apache.zookeeper.server.ZooKeeperServerMain", config(dir),
			}
		},
		prepare: func(port int, dir string) error {
			return os.WriteFile(config(dir), fmt.Appendf(nil, `
				clientPort=%d
				clientPortAddress=127.0.0.1
				dataDir=%s
				tickTime=%d
				maxSessionTimeout=%d
				maxClientCnxns=0
				admin.enableServer=false
				forceSync=no
				4lw.commands.whitelist=*
			`, port, dir, ZooKeeperTick.Milliseconds(), 200*ZooKeeperTick.Milliseconds()), 0o600)
		},
		ready:   zooKeeperReady,
		version: func(addr string) (string, error) { return askLine(addr, "srvr") },
	}
}

// zooKeeperReady is nil once the server serves requests. Its log must say so too, as for Redis.
func zooKeeperReady(addr string, log []byte) error {
	if !bytes.Contains(log, []byte("PrepRequestProcessor (sid:0) started")) {
		return errors.New("it has not begun to serve")
	}
	answer, err := askLine(addr, "srvr")
	if err == nil && !strings.HasPrefix(answer, "Zookeeper version") {
		err = errors.New(answer)
	}
	return err
}
