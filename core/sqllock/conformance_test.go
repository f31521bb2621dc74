package sqllock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

func TestConformanceOnPostgres(t *testing.T) {
	t.Parallel()
	srv := servers.Postgres(t)
	for name, params := range map[string]string{
		"defaults":     "",
		"simple":       "&default_query_exec_mode=simple_protocol",
		"serializable": "&options=-c%20default_transaction_isolation%3Dserializable",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			postgres(srv.Addr(), params).conforms(t)
		})
	}
}

func TestConformanceOnMariaDB(t *testing.T) {
	t.Parallel()
	srv := servers.MariaDB(t)
	for name, params := range map[string]string{
		"defaults":      "",
		"clientFound":   "?clientFoundRows=true",
		"interpolation": "?interpolateParams=true",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mariadb(srv.Addr(), params).conforms(t)
		})
	}
}

func TestConformanceOnSQLite(t *testing.T) {
	t.Parallel()
	sqlite(t, "&_pragma=journal_mode(WAL)").conforms(t)
}
