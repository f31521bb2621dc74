package sqllock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// roomy has a server let in the pools, and the connections that listen, of all processes of all cases.
var roomy = []string{"-c", "max_connections=400"}

// durable has a server remember, over a kill, what it has answered. The others are in a hurry.
var durable = append([]string{"-c", "synchronous_commit=on"}, roomy...)

// few cases run at once where the database has enough to do.
const few = 2

func TestConformanceOnPostgres(t *testing.T) {
	t.Parallel()
	srv := servers.Postgres(t, roomy...)
	t.Run("defaults", func(t *testing.T) {
		t.Parallel()
		drivertest.Run(t, postgres(srv.Addr(), "").listening().harnessWith(func(t *testing.T) (database, *servers.Server) {
			own := servers.Postgres(t, durable...)
			return postgres(own.Addr(), "").listening(), own
		}))
	})
	t.Run("serializable", func(t *testing.T) {
		t.Parallel()
		backendtest.Slow(t)
		drivertest.Run(t, postgres(srv.Addr(), "&options=-c%20default_transaction_isolation%3Dserializable").harness())
	})
	t.Run("simple, over uneven connections", func(t *testing.T) {
		t.Parallel()
		backendtest.Slow(t)
		drivertest.Run(t, postgres(srv.Addr(), "&default_query_exec_mode=simple_protocol").harness().Uneven(few))
	})
}

func TestConformanceOnMariaDB(t *testing.T) {
	t.Parallel()
	srv := servers.MariaDB(t)
	t.Run("defaults", func(t *testing.T) {
		t.Parallel()
		drivertest.Run(t, mariadb(srv.Addr(), "").harnessWith(func(t *testing.T) (database, *servers.Server) {
			own := servers.MariaDB(t, "--innodb-flush-log-at-trx-commit=2")
			return mariadb(own.Addr(), ""), own
		}))
	})
	t.Run("clientFound", func(t *testing.T) {
		t.Parallel()
		backendtest.Slow(t)
		drivertest.Run(t, mariadb(srv.Addr(), "?clientFoundRows=true").harness())
	})
	t.Run("interpolation, over uneven connections", func(t *testing.T) {
		t.Parallel()
		backendtest.Slow(t)
		drivertest.Run(t, mariadb(srv.Addr(), "?interpolateParams=true").harness().Uneven(few))
	})
}

func TestConformanceOnSQLite(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, drivertest.Harness{
		// A file for each case: who writes to one waits for all others who do, in no order.
		Open: func(t *testing.T) drivertest.Service {
			return sqlite(t, "&_pragma=journal_mode(WAL)").service(t)
		},
	})
}
