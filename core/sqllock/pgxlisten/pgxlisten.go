// Package pgxlisten lets package sqllock listen through pgx.
//
//	locks, err := core.New(sqllock.New(db, sqllock.Postgres,
//		sqllock.WithListen(pgxlisten.Connect("postgres://app@primary:5432/app"))))
package pgxlisten

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/core/sqllock"
)

// Connect returns a function for [sqllock.WithListen] that connects to url, as pgx.Connect does. The url
// must not lead to a pooler in transaction mode.
func Connect(url string) func(ctx context.Context) (sqllock.Listener, error) {
	return Dial(func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, url) })
}

// Dial returns a function for [sqllock.WithListen] that makes its connections with dial.
func Dial(dial func(ctx context.Context) (*pgx.Conn, error)) func(ctx context.Context) (sqllock.Listener, error) {
	return func(ctx context.Context) (sqllock.Listener, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return listener{conn}, nil
	}
}

type listener struct{ conn *pgx.Conn }

func (l listener) Listen(ctx context.Context, channel string) error {
	_, err := l.conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize())
	return err
}

func (l listener) Next(ctx context.Context) (string, error) {
	n, err := l.conn.WaitForNotification(ctx)
	if err != nil {
		return "", err
	}
	return n.Payload, nil
}

func (l listener) Ping(ctx context.Context) error { return l.conn.Ping(ctx) }

func (l listener) Close(ctx context.Context) error { return l.conn.Close(ctx) }
