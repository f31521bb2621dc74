package pgxlisten_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/core/sqllock"
	"github.com/holdfast-go/holdfast/core/sqllock/pgxlisten"
)

// Waiters hear of a release at once, through one connection of the process.
func ExampleConnect() {
	listen := pgxlisten.Connect("postgres://app@127.0.0.1:5432/app")
	_ = sqllock.WithListen(listen) // core.New(sqllock.New(db, sqllock.Postgres, …))

	ctx, stop := context.WithCancel(context.Background())
	stop()
	_, err := listen(ctx) // package sqllock calls it; it ends with its context
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// true
}

// A connection that needs more than a URL.
func ExampleDial() {
	listen := pgxlisten.Dial(func(ctx context.Context) (*pgx.Conn, error) {
		config, err := pgx.ParseConfig("postgres://app@127.0.0.1:5432/app")
		if err != nil {
			return nil, err
		}
		config.RuntimeParams["application_name"] = "locks"
		return pgx.ConnectConfig(ctx, config)
	})

	ctx, stop := context.WithCancel(context.Background())
	stop()
	_, err := listen(ctx)
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// true
}
