//go:build linux

package sqllock_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

func TestAFullDiskIsAnErrorThatSaysSoAndPasses(t *testing.T) {
	t.Parallel()
	d := postgres(servers.Postgres(t, durable...).Addr(), "")
	d.exec(t, schema(t, d.dialect))
	full := d.refuse
	if disk := smallDisk(t); disk != "" {
		d.onDisk(t, disk)
		full = func(t *testing.T) func() { return fill(t, disk) }
	}
	s := d.store(t, "holdfast_locks")
	claim := func(n int) driver.Claim {
		return driver.Claim{Name: fmt.Sprint("name-", n%10), Token: fmt.Sprint("token-", n), TTL: time.Minute}
	}
	holdHorizon(t, d, func(*sql.Tx) {
		defer full(t)()
		var err error
		for n := 0; err == nil && n < 100_000; n++ {
			if _, err = s.Acquire(t.Context(), claim(n)); err == nil {
				err = s.Release(t.Context(), claim(n))
			}
		}
		if !errors.Is(err, driver.ErrNotSent) || !strings.Contains(err.Error(), "disk") {
			t.Errorf("%v", err)
		}
	})
	for n := range 10 {
		c := claim(n)
		eventually(t, "the name can be locked", func() bool {
			_, err := s.Acquire(t.Context(), c)
			if held, is := errors.AsType[*driver.Held](err); is && held.Remaining > 0 { // the one whose release failed
				info, err := s.Inspect(t.Context(), c.Name)
				ok(t, err)
				ok(t, s.Evict(t.Context(), c.Name, info.Handle))
			}
			return err == nil
		})
	}
}

// smallDisk is a folder with little room, for the server's files; "" if we may not make one.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("not root: no disk gets full, the server only says so")
		return ""
	}
	dir, err := os.MkdirTemp("", "holdfast-disk-") //nolint:usetesting // the server's account may not enter TempDir's parent
	ok(t, err)
	t.Cleanup(func() { _ = os.Remove(dir) })
	server, err := user.Lookup("postgres")
	ok(t, err)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,uid="+server.Uid); err != nil {
		t.Log("no disk gets full, the server only says so: ", err)
		return ""
	}
	t.Cleanup(func() { ok(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	return dir
}

// onDisk moves the table there.
func (d database) onDisk(t *testing.T, disk string) {
	t.Helper()
	d.exec(t, "CREATE TABLESPACE small LOCATION '"+disk+"'")
	d.exec(t, "ALTER TABLE holdfast_locks SET TABLESPACE small")
}

// fill leaves no room on a disk until empty is called.
func fill(t *testing.T, disk string) (empty func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(disk, "full"))
	ok(t, err)
	defer func() { _ = f.Close() }()
	for page := make([]byte, 4096); err == nil; {
		_, err = f.Write(page)
	}
	return func() { ok(t, os.Remove(f.Name())) }
}

// refuse has the server answer each change as it does where its disk is full, until empty is called.
func (d database) refuse(t *testing.T) (empty func()) {
	t.Helper()
	d.exec(t, "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "+
		"$$ BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$")
	d.exec(t, "CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE OR DELETE ON holdfast_locks EXECUTE FUNCTION full_disk()")
	return func() { d.exec(t, "ALTER TABLE holdfast_locks DISABLE TRIGGER full_disk") }
}

// holdHorizon calls f in a transaction whose snapshot keeps the server from clearing away what is out of date.
func holdHorizon(t *testing.T, d database, f func(tx *sql.Tx)) {
	t.Helper()
	db, err := sql.Open(d.driver, d.source)
	ok(t, err)
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return
	}
	defer func() { _ = tx.Rollback() }()
	_, _ = tx.ExecContext(t.Context(), "SELECT txid_current(), count(*) FROM holdfast_locks")
	f(tx)
}
