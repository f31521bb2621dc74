package servers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Postgres starts a PostgreSQL server that belongs to the test, and ends with it. User and
// database are called postgres, and there is no password:
//
//	"postgres://postgres@" + srv.Addr() + "/postgres?sslmode=disable"
//
// It syncs nothing to disk, and takes some seconds to start: share one among subtests. args
// are added to its command line, such as "-c", "max_connections=10".
//
// [Server.Pause] stops only the process that accepts connections: those that are open go
// on. To silence them, put package faultproxy in between.
func Postgres(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return start(tb, postgresProduct(args))
}

// MariaDB starts a MariaDB server that belongs to the test, and ends with it. The user is
// root, without a password, the database is called test:
//
//	"root@tcp(" + srv.Addr() + ")/test"
//
// It syncs nothing to disk, and takes some seconds to start: share one among subtests. args
// are added to its command line, such as "--max-connections=10". If [MySQLEnv] names a server, that
// is the one that is started.
func MariaDB(tb testing.TB, args ...string) *Server {
	tb.Helper()
	if path := os.Getenv(MySQLEnv); path != "" {
		return start(tb, mysqlProduct(path, args))
	}
	return start(tb, mariadbProduct(args))
}

// MySQLEnv is the environment variable with the path of a mysqld, of MySQL 8.0.30 or later, that [MariaDB] starts
// instead of a MariaDB.
const MySQLEnv = "HOLDFAST_MYSQL_SERVER"

func postgresProduct(extra []string) product {
	return product{
		binary:        "postgres",
		debianPackage: "postgresql",
		account:       "postgres",
		quit:          os.Interrupt, // SIGTERM would wait until the last client has gone
		fill: func(path, dir string, log *os.File) error {
			initdb := filepath.Join(filepath.Dir(path), "initdb")
			return runOnce(log, "postgres", dir, initdb, "--pgdata", dir, "--username", "postgres", "--auth", "trust",
				"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
		},
		args: func(port int, dir string) []string {
			args := []string{"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "shared_buffers=16MB"}
			args = append(args, extra...)
			return append(args, "-D", dir, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
				"-c", "unix_socket_directories=", "-c", "logging_collector=off", "-c", "log_destination=stderr")
		},
		says: []string{"database system is ready to accept "}, // connections, or read-only ones if it is a standby
	}
}

func mariadbProduct(extra []string) product {
	fast := []string{"--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M"}
	return product{
		binary:        "mariadbd",
		debianPackage: "mariadb-server",
		account:       "mysql",
		fill: func(_, dir string, log *os.File) error {
			install, err := lookup("mariadb-install-db")
			if err != nil {
				return err
			}
			args := append([]string{"--no-defaults", "--datadir=" + dir, "--tmpdir=" + dir, "--auth-root-authentication-method=normal"}, fast...)
			return runOnce(log, "mysql", dir, install, args...)
		},
		args: func(port int, dir string) []string {
			args := append([]string{"--no-defaults"}, fast...) // --no-defaults has to be the first
			args = append(args, extra...)
			return append(args, "--datadir="+dir, "--tmpdir="+dir, "--port="+strconv.Itoa(port), "--bind-address=127.0.0.1",
				"--socket=s", "--pid-file=pid") // in dir; a socket's path must not be long
		},
		says: []string{"ready for connections"},
	}
}

func mysqlProduct(path string, extra []string) product {
	settings := []string{"--no-defaults", "--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync",
		"--innodb-buffer-pool-size=16M", "--innodb-redo-log-capacity=8M", "--skip-log-bin", "--mysqlx=OFF", "--secure-file-priv="}
	const init = "init.sql"
	return product{
		binary:  "mysqld",
		path:    path,
		account: "mysql",
		fill: func(path, dir string, log *os.File) error {
			args := append(slices.Clone(settings), "--initialize-insecure", "--datadir="+dir, "--tmpdir="+dir)
			if err := runOnce(log, "mysql", dir, path, args...); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, init), []byte("CREATE DATABASE IF NOT EXISTS test;\n"), 0o644) //nolint:gosec // G306: for the server's account
		},
		args: func(port int, dir string) []string {
			args := append(slices.Clone(settings), extra...)
			return append(args, "--datadir="+dir, "--tmpdir="+dir, "--port="+strconv.Itoa(port), "--bind-address=127.0.0.1",
				"--socket=s", "--pid-file=pid", "--init-file="+filepath.Join(dir, init))
		},
		says: []string{"ready for connections"},
	}
}

// runOnce runs a command, as a server's account, to its end.
func runOnce(log *os.File, account, dir, path string, args ...string) error {
	p, err := startProcess(path, args, nil, account, dir, log)
	if err != nil {
		return err
	}
	timeout := time.NewTimer(readyBound)
	defer timeout.Stop()
	select {
	case <-p.gone:
	case <-timeout.C:
		p.kill()
	}
	if p.err != nil {
		text, _ := os.ReadFile(log.Name()) // what there is
		return fmt.Errorf("%s: %w; its log:\n%s", filepath.Base(path), p.err, text)
	}
	return nil
}
