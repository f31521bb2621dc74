package sqlstoretest

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/httpmw/sqlstore"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	prove(t, sqlstore.Postgres, "pgx", "postgres://postgres@"+servers.Postgres(t).Addr()+"/postgres?sslmode=disable")
}

func TestManyProcessesMakeTheTableAtOnce(t *testing.T) {
	t.Parallel()
	source := "postgres://postgres@" + servers.Postgres(t).Addr() + "/postgres?sslmode=disable"
	var pools []*sql.DB
	for range 8 {
		db, err := sql.Open("pgx", source)
		if err == nil {
			err = db.PingContext(t.Context())
		}
		backendtest.OK(t, err)
		t.Cleanup(func() { _ = db.Close() })
		pools = append(pools, db)
	}
	for i := range 20 {
		var all sync.WaitGroup
		for _, db := range pools {
			all.Go(func() {
				s, err := sqlstore.New(db, sqlstore.Postgres, fmt.Sprint("answers_", i))
				if err == nil {
					err = s.Create(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

func TestMariaDB(t *testing.T) {
	t.Parallel()
	prove(t, sqlstore.MySQL, "mysql", "root@tcp("+servers.MariaDB(t).Addr()+")/test")
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	prove(t, sqlstore.SQLite, "sqlite", "file:"+filepath.Join(t.TempDir(), "db")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)")
}

func prove(t *testing.T, dialect sqlstore.Dialect, driver, source string) {
	t.Helper()
	db, err := sql.Open(driver, source)
	backendtest.OK(t, err)
	t.Cleanup(func() { _ = db.Close() })
	s, err := sqlstore.New(db, dialect, "")
	backendtest.OK(t, err)
	for range 2 { // it may be there
		backendtest.OK(t, s.Create(t.Context()))
	}
	storetest.Run(t, s)
	for _, window := range []time.Duration{time.Millisecond, time.Hour} {
		backendtest.OK(t, s.Save(t.Context(), "purge-"+window.String(), []byte("x"), window))
	}
	for rows := 1; rows > 0; {
		backendtest.OK(t, s.Purge(t.Context()))
		backendtest.OK(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM holdfast_answers WHERE id = 'purge-1ms'").Scan(&rows))
	}
	if got, err := s.Load(t.Context(), "purge-1h0m0s"); err != nil || string(got) != "x" {
		t.Errorf("Purge has removed what counts: %q, %v", got, err)
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	db := new(sql.DB)
	for _, made := range []func() (*sqlstore.Store, error){
		func() (*sqlstore.Store, error) { return sqlstore.New(nil, sqlstore.SQLite, "") },
		func() (*sqlstore.Store, error) { return sqlstore.New(db, 0, "") },
		func() (*sqlstore.Store, error) { return sqlstore.New(db, sqlstore.SQLite+1, "") },
		func() (*sqlstore.Store, error) { return sqlstore.New(db, sqlstore.SQLite, "x; DROP TABLE y") },
	} {
		if _, err := made(); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%v, want ErrInvalid", err)
		}
	}
}
