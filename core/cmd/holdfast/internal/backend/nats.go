package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core/natslock"
)

func openNATS(_ context.Context, a *address, o Options) (*Backend, error) {
	hosts, err := a.ports("localhost", "4222")
	if err != nil {
		return nil, err
	}
	bucket := cmp.Or(strings.Trim(a.path, "/"), "holdfast")
	if err := a.noPrefix("a bucket of its own, as the path"); err != nil {
		return nil, err
	}
	options, err := a.natsOptions(o.Password)
	if err != nil {
		return nil, err
	}
	domain := a.take("domain")
	if err := a.leftovers(); err != nil {
		return nil, err
	}
	conn, err := nats.Connect("nats://"+strings.Join(hosts, ",nats://"), options...)
	if err != nil {
		return nil, &unreachableError{err}
	}
	js, err := jetstream.New(conn)
	if domain != "" {
		js, err = jetstream.NewWithDomain(conn, domain)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	store := natslock.New(js, bucket)
	if err := store.Capabilities().Err; err != nil {
		conn.Close()
		return nil, err
	}
	return &Backend{Driver: store, Prefix: bucket, close: []func(){conn.Close}}, nil
}

// natsOptions are how to connect, and as whom. A user without a password is a token, as nats-server's URLs have
// it.
func (a *address) natsOptions(password string) ([]nats.Option, error) {
	options := []nats.Option{
		nats.Name("holdfast"), nats.Timeout(dialTimeout), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), nats.FlusherTimeout(dialTimeout),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // whom it concerns is told
	}
	name, secret := a.user.Username(), a.password(password)
	file := a.take("creds")
	switch {
	case file != "" && name != "":
		return nil, errors.New("either a user or creds=")
	case file != "":
		options = append(options, nats.UserCredentials(file))
	case name != "" && secret == "":
		options = append(options, nats.Token(name))
	case name != "":
		options = append(options, nats.UserInfo(name, secret))
	}
	if a.scheme == "nats+tls" {
		config, err := a.tls()
		if err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
		options = append(options, nats.Secure(config))
	}
	return options, nil
}
