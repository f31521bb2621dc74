package sqllock_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/sqllock"
	"github.com/holdfast-go/holdfast/core/sqllock/pgxlisten"
)

func open() (*core.Locker, error) {
	const primary = "postgres://app@primary:5432/app"
	db, err := sql.Open("pgx", primary)
	if err != nil {
		return nil, err
	}
	return core.New(sqllock.New(db, sqllock.Postgres, sqllock.WithListen(pgxlisten.Connect(primary))))
}

var _ = open

// exampleDB opens a new database with the table of the locks.
func exampleDB(ctx context.Context) (db *sql.DB, done func()) {
	dir, _ := os.MkdirTemp("", "holdfast-example-")
	db, _ = sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)")
	schema, _ := sqllock.Schema(sqllock.SQLite)
	db.ExecContext(ctx, schema)
	return db, func() { db.Close(); os.RemoveAll(dir) }
}

func ExampleNew() {
	ctx := context.Background()
	db, done := exampleDB(ctx)
	defer done()

	locks, err := core.New(sqllock.New(db, sqllock.SQLite))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)
	err = locks.Do(ctx, "order:42", func(ctx context.Context) error {
		fence, _ := core.FenceFor(ctx, "order:42")
		fmt.Println("alone, with a fence:", fence > 0)
		return nil
	})
	fmt.Println(err)
	// Output:
	// alone, with a fence: true
	// <nil>
}
