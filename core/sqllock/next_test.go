package sqllock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/oldservice"
)

func TestConformanceToTheNewContractOnSQLite(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, func(tb testing.TB) drivertest.Config {
		test := tb.(*testing.T)
		return oldservice.Config(sqlite(test, "&_pragma=journal_mode(WAL)").service(test), 250*time.Millisecond)
	})
}

func TestConformanceToTheNewContractOnPostgres(t *testing.T) {
	t.Parallel()
	srv := servers.Postgres(t, roomy...)
	drivertest.Run(t, func(tb testing.TB) drivertest.Config {
		return oldservice.Config(postgres(srv.Addr(), "").listening().service(tb.(*testing.T)), 250*time.Millisecond)
	})
}

func TestConformanceToTheNewContractOnMariaDB(t *testing.T) {
	t.Parallel()
	srv := servers.MariaDB(t)
	drivertest.Run(t, func(tb testing.TB) drivertest.Config {
		return oldservice.Config(mariadb(srv.Addr(), "").service(tb.(*testing.T)), 250*time.Millisecond)
	})
}
