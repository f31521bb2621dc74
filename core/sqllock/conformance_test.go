package sqllock_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// durable has a server remember, over a kill, what it has answered. The others are in a hurry.
var durable = []string{"-c", "synchronous_commit=on"}

func TestConformanceOnPostgres(t *testing.T) {
	t.Parallel()
	srv := servers.Postgres(t)
	t.Run("defaults", func(t *testing.T) {
		t.Parallel()
		drivertest.Run(t, postgres(srv.Addr(), "").evidence("PostgreSQL", "PostgreSQL "+srv.Version(),
			func(t *testing.T) (database, *servers.Server) {
				own := servers.Postgres(t, durable...)
				return postgres(own.Addr(), ""), own
			}))
	})
	for name, params := range map[string]string{
		"simple":       "&default_query_exec_mode=simple_protocol",
		"serializable": "&options=-c%20default_transaction_isolation%3Dserializable",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drivertest.Run(t, postgres(srv.Addr(), params).harness())
		})
	}
}

func TestConformanceOnMariaDB(t *testing.T) {
	t.Parallel()
	srv := servers.MariaDB(t)
	t.Run("defaults", func(t *testing.T) {
		t.Parallel()
		drivertest.Run(t, mariadb(srv.Addr(), "").evidence("MariaDB", "MariaDB "+srv.Version(),
			func(t *testing.T) (database, *servers.Server) {
				own := servers.MariaDB(t, "--innodb-flush-log-at-trx-commit=2")
				return mariadb(own.Addr(), ""), own
			}))
	})
	for name, params := range map[string]string{
		"clientFound":   "?clientFoundRows=true",
		"interpolation": "?interpolateParams=true",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drivertest.Run(t, mariadb(srv.Addr(), params).harness())
		})
	}
}

func TestConformanceOnSQLite(t *testing.T) {
	t.Parallel()
	d := sqlite(t, "&_pragma=journal_mode(WAL)")
	var version string
	ok(t, d.open(t).QueryRowContext(t.Context(), "SELECT sqlite_version()").Scan(&version))
	h := d.harness()
	h.Backend, h.Server = "SQLite", "SQLite "+version[:strings.LastIndex(version, ".")]
	drivertest.Run(t, h)
}
