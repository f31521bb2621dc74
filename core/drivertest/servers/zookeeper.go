package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The jars that run the server, which know the others that they need.
const (
	zooKeeperJar = "/usr/share/java/zookeeper.jar"
	zooKeeperLog = "/usr/share/java/slf4j-simple.jar"
)

// ZooKeeperTick is the tick of the servers that [ZooKeeper] starts. They agree to sessions of
// 2 to 600 ticks.
const ZooKeeperTick = 200 * time.Millisecond

// ZooKeeper starts a standalone ZooKeeper that belongs to the test, and ends with it. It
// needs the Java packages of Debian. What it is told survives a restart, as ZooKeeper does.
func ZooKeeper(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, zooKeeperProduct(tb))
}

func zooKeeperProduct(tb testing.TB) product {
	tb.Helper()
	if _, err := os.Stat(zooKeeperJar); err != nil {
		missing(tb, err, "libzookeeper-java")
	}
	return product{
		binary:        "java",
		debianPackage: "default-jre-headless",
		args:          zooKeeperArgs("ZooKeeperServerMain"),
		prepare:       func(port int, dir string) error { return zooKeeperPrepare(port, dir, "") },
		says:          []string{"Using checkIntervalMs="}, // of containers, which it looks after once it serves
	}
}

// zooKeeperArgs runs a class of the server's.
func zooKeeperArgs(class string) func(port int, dir string) []string {
	return func(_ int, dir string) []string {
		return []string{
			"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", // a small server, and a quick start
			"-Dznode.container.checkIntervalMs=1000",                                       // once a minute would be too seldom to wait for
			"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=error", // clients come and go
			"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.ZooKeeperServer=error",
			"-cp", zooKeeperJar + ":" + zooKeeperLog,
			"org.apache.zookeeper.server." + class, zooKeeperConfig(dir),
		}
	}
}

func zooKeeperConfig(dir string) string { return filepath.Join(dir, "zoo.cfg") }

// zooKeeperPrepare writes the configuration, more at its end.
func zooKeeperPrepare(port int, dir, more string) error {
	return os.WriteFile(zooKeeperConfig(dir), fmt.Appendf(nil, `
		clientPort=%d
		clientPortAddress=127.0.0.1
		dataDir=%s
		tickTime=%d
		maxSessionTimeout=%d
		maxClientCnxns=0
		admin.enableServer=false
		forceSync=no
		4lw.commands.whitelist=*
		%s
	`, port, dir, ZooKeeperTick.Milliseconds(), 600*ZooKeeperTick.Milliseconds(), more), 0o600)
}
