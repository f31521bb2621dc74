package backend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core/etcdlock"
)

func openEtcd(_ context.Context, a *address, o Options) (*Backend, error) {
	hosts, err := a.ports("localhost", "2379")
	if err != nil {
		return nil, err
	}
	if strings.Trim(a.path, "/") != "" {
		return nil, errors.New("etcd has no path; use prefix=")
	}
	prefix := "holdfast/"
	if a.query.Has("prefix") {
		prefix = a.take("prefix")
	}
	c := clientv3.Config{
		Endpoints: hosts, DialTimeout: dialTimeout, Logger: zap.NewNop(),
		Username: a.user.Username(), Password: a.password(o.Password),
	}
	if c.Username == "" {
		c.Password = ""
	}
	if a.scheme == "etcds" {
		if c.TLS, err = a.tls(); err != nil {
			return nil, err
		}
	}
	if err := a.leftovers(); err != nil {
		return nil, err
	}
	client, err := clientv3.New(c) // with a user, it logs in
	switch {
	case err != nil && unanswered(err):
		return nil, &unreachableError{fmt.Errorf("log in: %w", err)}
	case err != nil:
		return nil, err
	}
	return &Backend{
		Driver: etcdlock.New(client, etcdlock.WithPrefix(prefix)), Prefix: prefix,
		close: []func(){func() { _ = client.Close() }},
	}, nil
}

// unanswered says that a call failed because no member answered, or those that did could not serve it.
func unanswered(err error) bool {
	code := status.Code(err)
	if known, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		code = known.Code() // not a gRPC status any more
	}
	return errors.Is(err, context.DeadlineExceeded) || code == codes.DeadlineExceeded || code == codes.Unavailable
}

// tls reads the files that the parameters name.
func (a *address) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := a.take("cacert"); file != "" {
		pem, err := os.ReadFile(file) //nolint:gosec // G304: the user says which
		if err != nil {
			return nil, fmt.Errorf("cacert: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cacert: no certificate in %s", file)
		}
	}
	if cert, key := a.take("cert"), a.take("key"); cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("cert and key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
