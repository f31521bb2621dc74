package sqllock_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

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
	file := filepath.Join(t.TempDir(), "pgbouncer.ini")
	ok(t, os.WriteFile(file, []byte(config), 0o644))
	args := []string{file}
	if os.Getuid() == 0 { // as which it refuses to run
		args = append(args, "-u", "nobody")
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	ok(t, l.Close())
	ok(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	eventually(t, "pgbouncer listens", func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return addr
}
