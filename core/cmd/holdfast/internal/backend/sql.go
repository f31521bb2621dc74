package backend

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // registers itself; it has no constructor

	"github.com/holdfast-go/holdfast/core/sqllock"
)

func (a *address) table() (string, error) {
	return cmp.Or(a.take("table"), "holdfast_locks"), a.noPrefix("table=")
}

func openPostgres(_ context.Context, a *address, o Options) (*Backend, error) {
	if _, err := a.ports("localhost", "5432"); err != nil {
		return nil, err
	}
	table, err := a.table()
	if err != nil {
		return nil, err
	}
	if !a.query.Has("connect_timeout") {
		a.query.Set("connect_timeout", "3")
	}
	// By hand, since url.URL has one host.
	text := "postgres://" + userinfo(a, o.Password) + strings.Join(a.hosts, ",") + (&url.URL{Path: a.path, RawQuery: a.query.Encode()}).String()
	c, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, errors.New("pgx does not take the path or a parameter") // its own words may have a password
	}
	return sqlBackend(stdlib.OpenDB(*c), sqllock.Postgres, table)
}

func userinfo(a *address, password string) string {
	name, p := a.user.Username(), a.password(password)
	switch {
	case name == "" && p == "":
		return ""
	case p == "":
		return url.User(name).String() + "@"
	default:
		return url.UserPassword(name, p).String() + "@"
	}
}

func openMySQL(_ context.Context, a *address, o Options) (*Backend, error) {
	hosts, err := a.ports("localhost", "3306")
	if err != nil {
		return nil, err
	}
	if len(hosts) > 1 {
		return nil, errors.New("several hosts")
	}
	table, err := a.table()
	if err != nil {
		return nil, err
	}
	if !a.query.Has("interpolateParams") {
		a.query.Set("interpolateParams", "true") // one message for a statement, not three
	}
	if !a.query.Has("timeout") {
		a.query.Set("timeout", dialTimeout.String())
	}
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = a.user.Username(), a.password(o.Password), "tcp", hosts[0], strings.TrimPrefix(a.path, "/")
	text := c.FormatDSN()
	if strings.Contains(text, "?") {
		text += "&" + a.query.Encode()
	} else {
		text += "?" + a.query.Encode()
	}
	if c, err = mysql.ParseDSN(text); err != nil {
		return nil, errors.New("go-sql-driver/mysql does not take a parameter") // its own words may have a password
	}
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, errors.New("go-sql-driver/mysql does not take a parameter")
	}
	return sqlBackend(sql.OpenDB(connector), sqllock.MySQL, table)
}

// openSQLite takes sqlite:file, sqlite:/path/file and sqlite:///path/file.
func openSQLite(ctx context.Context, a *address, o Options) (*Backend, error) {
	if a.hosts != nil || a.path == "" {
		return nil, errors.New("not of the form sqlite:file or sqlite:///path/file")
	}
	table, err := a.table()
	if err != nil {
		return nil, err
	}
	if !o.Create {
		// Who only looks makes no file for a name that was mistyped.
		if _, err := os.Stat(a.path); err != nil {
			return nil, fmt.Errorf("%w; holdfast run makes it", err)
		}
	}
	for name, value := range map[string]string{"busy_timeout": "5000", "journal_mode": "WAL"} {
		if !strings.Contains(strings.Join(a.query["_pragma"], " "), name) {
			a.query.Add("_pragma", name+"("+value+")")
		}
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: a.path}).EscapedPath(), RawQuery: a.query.Encode()}).String())
	if err != nil {
		return nil, err
	}
	b, err := sqlBackend(db, sqllock.SQLite, table)
	if err == nil && o.Create {
		if _, err = db.ExecContext(ctx, b.Schema); err != nil {
			b.Close()
			return nil, err
		}
	}
	return b, err
}

func sqlBackend(db *sql.DB, d sqllock.Dialect, table string) (*Backend, error) {
	schema, err := sqllock.Schema(d, sqllock.WithTable(table))
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return &Backend{
		Driver: sqllock.New(db, d, sqllock.WithTable(table)), Prefix: table, Schema: schema, db: db,
		close: []func(){func() { _ = db.Close() }},
	}, nil
}
