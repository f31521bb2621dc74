package sqllock_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// pooled is a server behind a pooler.
type pooled struct {
	*servers.Server
	addr string
}

func (p pooled) Addr() string { return p.addr }

func pool(t testing.TB, srv *servers.Server) pooled {
	t.Helper()
	return pooled{srv, pooler(t, srv.Addr())}
}

func TestConformanceBehindAPoolerOfTransactions(t *testing.T) {
	t.Parallel()
	srv := servers.Postgres(t)
	t.Run("exec", func(t *testing.T) { // a pooler for each: its connections are few
		t.Parallel()
		own := func(t testing.TB) backendtest.Server { return pool(t, servers.Postgres(t, durable...)) }
		postgres(srv.Addr(), "&default_query_exec_mode=exec").service(own).Run(t, pool(t, srv))
	})
	t.Run("simple protocol", func(t *testing.T) {
		t.Parallel()
		backendtest.Slow(t)
		postgres(srv.Addr(), "&default_query_exec_mode=simple_protocol").service(nil).Run(t, pool(t, srv))
	})
}

// pooler starts a PgBouncer with few connections to the server, which gives each transaction
// any of them.
func pooler(t testing.TB, target string) string {
	t.Helper()
	path := servers.Find(t, "pgbouncer", "pgbouncer")
	host, port, err := net.SplitHostPort(target)
	ok(t, err)
	var l net.Listener
	for l == nil { // a port that connections of clients do not get: one could have it before PgBouncer
		l, _ = (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", 17_000+rand.IntN(4_000)))
	}
	addr := l.Addr().String()
	_, own, err := net.SplitHostPort(addr)
	ok(t, err)
	config := fmt.Sprintf(`[databases]
postgres = host=%s port=%s dbname=postgres user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 8
max_client_conn = 1000
`, host, port, own)
	dir, err := os.MkdirTemp("", "holdfast-pgbouncer-") //nolint:usetesting // another account may not enter TempDir's parent
	ok(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ok(t, os.Chmod(dir, 0o755))
	file := filepath.Join(dir, "pgbouncer.ini")
	ok(t, os.WriteFile(file, []byte(config), 0o644))
	var log bytes.Buffer
	cmd := exec.Command(path, file)
	cmd.Stdout, cmd.Stderr = &log, &log
	if os.Getuid() == 0 { // as which it refuses to run
		nobody, err := user.Lookup("nobody")
		ok(t, err)
		uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
		ok(t, err)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	ok(t, l.Close())
	ok(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of pgbouncer:\n%s", log.String())
		}
	})
	for range 1000 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = conn.Close()
			return addr
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("pgbouncer does not listen")
	return ""
}
