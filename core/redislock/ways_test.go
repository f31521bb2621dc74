package redislock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// The ways by which a client reaches its server, and what changes there.

// handsOver has a name renewed, waited for and handed over.
func handsOver(t *testing.T, locks, other *core.Locker) {
	t.Helper()
	x := acquire(t, locks, "name", core.WithRenewEvery(ttl/10))
	got := next(t, other, "name")
	renewed(t, x)
	ok(t, x.Release(t.Context()))
	ok(t, <-got)
}

// taken are the arguments of a server on which an administrator has taken commands away.
func taken(commands ...string) (args []string) {
	for _, c := range commands {
		args = append(args, "--rename-command", c, "")
	}
	return args
}

func TestLocksWorkByAnyProtocolAndDatabase(t *testing.T) {
	t.Parallel()
	for way, c := range map[string]struct {
		args []string
		o    redis.Options
	}{
		"RESP2":            {o: redis.Options{Protocol: 2}},
		"RESP3":            {o: redis.Options{Protocol: 3}},
		"another database": {o: redis.Options{DB: 5}},
		// Servers before Redis 6 know neither HELLO nor users. The client asks for RESP3.
		"a server that knows RESP2 only": {args: append(taken("HELLO", "CLIENT"), "--requirepass", "secret"), o: redis.Options{Password: "secret"}},
		"without the commands of administrators": {args: taken(
			"FLUSHALL", "FLUSHDB", "CONFIG", "KEYS", "SHUTDOWN", "DEBUG", "MONITOR", "SAVE", "BGSAVE", "BGREWRITEAOF",
			"REPLICAOF", "SLAVEOF", "ACL", "SCRIPT", "CLIENT", "INFO", "COMMAND", "SCAN", "RENAME",
		)},
		"without those of notifications": {args: taken("PUBLISH", "SUBSCRIBE")},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			c.o.Addr = servers.Redis(t, c.args...).Addr()
			locks := clusterLocker(t, dial(t, &c.o))
			ok(t, locks.Ready(t.Context()))
			handsOver(t, locks, clusterLocker(t, dial(t, &c.o)))
		})
	}
}

// A service with one endpoint moves the name of that endpoint to another server. Connections that a client has go on to the
// old one, which is a replica now.
func TestAFailoverBehindOneEndpointIsFollowed(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	old := servers.Redis(t)
	to := follow(t, old)
	var resolves atomic.Pointer[servers.Server]
	resolves.Store(old)
	o := &redis.Options{Addr: "redis.example:6379", Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, resolves.Load().Addr())
	}}
	locks, other := clusterLocker(t, dial(t, o)), clusterLocker(t, dial(t, o))
	x := acquire(t, locks, "held", core.WithRenewEvery(ttl/10))
	got := next(t, other, "held")
	piped, both := redislock.BySlots(store(t, dial(t, o))), []driver.Claim{claim("a", "a"), claim("b", "b")}
	renewsBoth := func() bool { // in a pipeline
		ctx, cancel := context.WithTimeout(t.Context(), ttl/3)
		defer cancel()
		return errors.Join(piped.Renew(ctx, both)...) == nil
	}
	for _, c := range both {
		grant(t, piped, c)
	}
	eventually(t, "it is connected", renewsBoth)
	promoted := dial(t, &redis.Options{Addr: to.Addr()})
	eventually(t, "the replica has heard of all", func() bool {
		return promoted.Exists(t.Context(), "holdfast:held", "holdfast:a", "holdfast:b").Val() == 3
	})
	ok(t, promoted.ReplicaOf(t.Context(), "no", "one").Err())
	host, port, _ := strings.Cut(to.Addr(), ":")
	ok(t, dial(t, &redis.Options{Addr: old.Addr()}).ReplicaOf(t.Context(), host, port).Err())
	resolves.Store(to)
	renewed(t, x)
	ok(t, x.Release(t.Context()))
	ok(t, <-got)
	handsOver(t, locks, other)
	eventually(t, "pipelines follow, too", renewsBoth)
}

func TestLocksWorkOverTLSWithThoseWhoProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	server := servers.Redis(t, "--tls-cert-file", a.certFile, "--tls-key-file", a.keyFile, "--tls-ca-cert-file", a.certFile)
	over := func(config *tls.Config) *core.Locker {
		return clusterLocker(t, dial(t, &redis.Options{Addr: server.TLSAddr(), TLSConfig: config}))
	}
	proves := &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.pair}, MinVersion: tls.VersionTLS12}
	handsOver(t, over(proves), over(proves))
	for who, config := range map[string]*tls.Config{"without a certificate": {RootCAs: a.pool}, "without TLS": nil} {
		if _, err := over(config).TryAcquire(t.Context(), "name"); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("a client %s: %v", who, err)
		}
	}
}

// authority vouches for itself, as server and as client.
type authority struct {
	pool              *x509.CertPool
	pair              tls.Certificate
	certFile, keyFile string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "holdfast test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ok(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ok(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	a := &authority{pool: x509.NewCertPool(), certFile: filepath.Join(t.TempDir(), "cert.pem"), keyFile: filepath.Join(t.TempDir(), "key.pem")}
	a.pool.AppendCertsFromPEM(certPEM)
	a.pair, err = tls.X509KeyPair(certPEM, keyPEM)
	ok(t, err)
	ok(t, os.WriteFile(a.certFile, certPEM, 0o600))
	ok(t, os.WriteFile(a.keyFile, keyPEM, 0o600))
	return a
}
