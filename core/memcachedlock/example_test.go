package memcachedlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memcachedlock"
)

func open() (*core.Locker, error) {
	mc := memcache.New("10.0.0.1:11211") // one server, or the path of a unix socket
	mc.MaxIdleConns = 16
	return core.New(memcachedlock.New(mc))
}

// logIn has each new connection log in at a memcached that runs with -Y.
func logIn(mc *memcache.Client, user, password string) {
	mc.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		login := user + " " + password
		fmt.Fprintf(conn, "set auth 0 0 %d\r\n%s\r\n", len(login), login)
		answer := make([]byte, len("STORED\r\n"))
		if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "STORED\r\n" {
			conn.Close()
			return nil, errors.New("memcached does not accept the password")
		}
		return conn, nil
	}
}

var _ = logIn

func Example() {
	locks, err := open()
	if err != nil {
		panic(err)
	}
	fmt.Println(locks.Close(context.Background()))
	// Output: <nil>
}
