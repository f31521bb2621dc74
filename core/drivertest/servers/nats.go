package servers

import (
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
	return start(tb, natsProduct(tb, args...))
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
	routes := make([]string, clusterOf)
	for i, port := range freePorts(tb, clusterOf) {
		routes[i] = "nats://127.0.0.1:" + strconv.Itoa(port)
	}
	return launchAll(tb, func(i int) product {
		return natsProduct(tb, "--name", fmt.Sprint("member-", i), "--cluster_name", "holdfast",
			"--cluster", routes[i], "--routes", strings.Join(routes, ","),
			"--no_advertise") // clients are told of no way around a proxy
	})
}

func natsProduct(tb testing.TB, extra ...string) product {
	tb.Helper()
	path, err := pinnedNATS()
	if err != nil {
		tb.Fatalf("servers: %v", err)
	}
	return product{
		binary:        "nats-server",
		debianPackage: "nats-server",
		path:          path,
		args: func(port int, dir string) []string {
			return append([]string{"--addr", "127.0.0.1", "--port", strconv.Itoa(port), "--jetstream", "--store_dir", dir}, extra...)
		},
		says: []string{"Server is ready"},
	}
}
