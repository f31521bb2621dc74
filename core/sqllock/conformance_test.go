package sqllock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// roomy has a server let in the pools, and the connections that listen, of all processes of all cases.
var roomy = []string{"-c", "max_connections=400"}

// slowly has a server wait for 5 ms before each commit, and for its disk.
var slowly = append([]string{"-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "commit_delay=5000", "-c", "commit_siblings=0"}, roomy...)

// durable has a server remember, over a kill, what it has answered. The others are in a hurry.
var durable = append([]string{"-c", "synchronous_commit=on"}, roomy...)

func TestConformanceOnPostgres(t *testing.T) {
	t.Parallel()
	srv := servers.Postgres(t, slowly...)
	own := func(t testing.TB) backendtest.Server { return servers.Postgres(t, durable...) }
	t.Run("defaults", func(t *testing.T) {
		t.Parallel()
		postgres(srv.Addr(), "").listening().service(own).Run(t, srv)
	})
	t.Run("serializable", func(t *testing.T) {
		t.Parallel()
		backendtest.Slow(t)
		postgres(srv.Addr(), "&options=-c%20default_transaction_isolation%3Dserializable").service(nil).Run(t, srv)
	})
	t.Run("simple, over uneven connections", func(t *testing.T) {
		t.Parallel()
		backendtest.Slow(t)
		postgres(srv.Addr(), "&default_query_exec_mode=simple_protocol").service(nil).RunUneven(t, srv)
	})
}

func TestConformanceOnMariaDB(t *testing.T) {
	t.Parallel()
	srv := servers.MariaDB(t, "--max-connections=400")
	own := func(t testing.TB) backendtest.Server { return servers.MariaDB(t, "--innodb-flush-log-at-trx-commit=2") }
	t.Run("defaults", func(t *testing.T) {
		t.Parallel()
		mariadb(srv.Addr(), "").service(own).Run(t, srv)
	})
	t.Run("clientFound", func(t *testing.T) {
		t.Parallel()
		backendtest.Slow(t)
		mariadb(srv.Addr(), "?clientFoundRows=true").service(nil).Run(t, srv)
	})
	t.Run("interpolation, over uneven connections", func(t *testing.T) {
		t.Parallel()
		backendtest.Slow(t)
		mariadb(srv.Addr(), "?interpolateParams=true").service(nil).RunUneven(t, srv)
	})
}

func TestConformanceOnSQLite(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		// A file for each case: who writes to one waits for all others who do, in no order.
		d := sqlite(t, "&_pragma=journal_mode(WAL)")
		c := d.config(t, "locks")
		c.Driver = func() driver.Driver { return d.store(t, "locks") }
		return c
	})
}
