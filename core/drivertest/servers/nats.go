package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// NATS starts a nats-server with JetStream that belongs to the test, and ends with it. What it is told survives
// a restart. args are added to its command line, such as "--config", file.
//
// In this repository it is the server that tools/go.mod pins: nothing has to be installed. Elsewhere it has to
// be on the PATH, in version 2.11 or later.
func NATS(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return start(tb, "nats-server", natsProduct(args), natsServer(tb), tb.TempDir())
}

// natsServer is the path of the binary.
func natsServer(tb testing.TB) string {
	tb.Helper()
	path, err := pinnedNATS()
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	if path == "" {
		path = Find(tb, "nats-server", "nats-server")
	}
	return path
}

// pinnedNATS builds the server that tools/go.mod pins, and returns where Go's cache has it: "" where there is
// no such file.
var pinnedNATS = sync.OnceValues(func() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	folder := filepath.Join(filepath.Dir(file), "..", "..", "..", "tools")
	if _, err := os.Stat(filepath.Join(folder, "go.mod")); err != nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	build := exec.CommandContext(ctx, "go", "tool", "-n", "nats-server")
	build.Dir = folder
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=") // those of the test are not for another module
	path, err := build.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	return strings.TrimSpace(string(path)), err
})

// NATSCluster starts a cluster of three nats-servers, named "member-0" to "member-2", that belongs to the test, and ends with it. With two of them
// it goes on.
func NATSCluster(tb testing.TB) []*Server {
	tb.Helper()
	path := natsServer(tb)
	ports, err := freePorts(tb, clusterOf)
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	routes := make([]string, clusterOf)
	for i, port := range ports {
		routes[i] = "nats://127.0.0.1:" + strconv.Itoa(port)
	}
	return launchAll(tb, path, func(i int) product {
		return natsProduct([]string{
			"--name", fmt.Sprint("member-", i), "--cluster_name", "holdfast",
			"--cluster", routes[i], "--routes", strings.Join(routes, ","),
			"--no_advertise", // clients are told of no way around a proxy
		})
	})
}

func natsProduct(extra []string) product {
	return product{
		binary: "nats-server",
		args: func(port int, dir string) []string {
			return append([]string{"--addr", "127.0.0.1", "--port", strconv.Itoa(port), "--jetstream", "--store_dir", dir}, extra...)
		},
		ready: func(addr string, log []byte) error {
			if !bytes.Contains(log, []byte("Server is ready")) {
				return errors.New("it is not ready")
			}
			return natsGreets(addr)
		},
	}
}

// natsGreets asks for the line with which a server greets.
func natsGreets(addr string) error {
	info, err := askLine(addr, "PING\r\n")
	if err == nil && !strings.HasPrefix(info, "INFO ") {
		err = errors.New(info)
	}
	return err
}
