package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/zklock"
)

// silent is a log that nobody reads.
type silent struct{}

func (silent) Printf(string, ...any) {}

func openZooKeeper(ctx context.Context, a *address, o Options) (*Backend, error) {
	hosts, err := a.ports("localhost", "2181")
	if err != nil {
		return nil, err
	}
	if err := a.noPrefix("a root of its own, as the path"); err != nil {
		return nil, err
	}
	if err := a.leftovers(); err != nil {
		return nil, err
	}
	root := cmp.Or(strings.TrimSuffix(a.path, "/"), "/holdfast")
	session := new(zklock.Session)
	timeout := max(o.TTL*5/2, 25*time.Second) // as package zklock recommends
	conn, events, err := zk.Connect(hosts, timeout, zk.WithDialer(session.Dial), zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	if err := awaitSession(ctx, events); err != nil {
		conn.Close()
		return nil, err
	}
	opts := []zklock.Option{zklock.WithRoot(root)}
	if name := a.user.Username(); name != "" {
		if err := conn.AddAuth("digest", []byte(name+":"+a.password(o.Password))); err != nil {
			conn.Close()
			return nil, errors.New("ZooKeeper does not take the user or its password")
		}
		opts = append(opts, zklock.WithACL(zk.AuthACL(zk.PermAll)))
	}
	return &Backend{Driver: zklock.New(conn, session, opts...), Prefix: root, close: []func(){conn.Close}}, nil
}

// awaitSession says after a while that nobody answers: the client itself would go on for ever, and a
// command ends with words about a session then, not about an address.
func awaitSession(ctx context.Context, events <-chan zk.Event) error {
	timer := time.NewTimer(2 * dialTimeout)
	defer timer.Stop()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return nil
			}
			if e.State == zk.StateAuthFailed {
				return errors.New("ZooKeeper does not take the user or its password")
			}
		case <-timer.C:
			return &unreachableError{fmt.Errorf("no server has agreed to a session within %s", 2*dialTimeout)}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
