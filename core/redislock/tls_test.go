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
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func TestLocksWorkOverTLSWithThoseWhoProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	server := servers.Redis(t, ours.args()...)
	over := func(config *tls.Config) *redis.Client {
		return dial(t, &redis.Options{Addr: server.TLSAddr(), TLSConfig: config})
	}
	noneWithout(t, server.TLSAddr())
	locks, other := clusterLocker(t, over(ours.client())), clusterLocker(t, over(ours.client()))
	handsOver(t, locks, other)
	for who, config := range strangers(t, ours) {
		t.Log(who)
		_, err := locker(t, over(config)).TryAcquire(t.Context(), "name")
		is(t, err, core.ErrUnavailable)
	}
}

// handsOver has a name renewed, waited for and handed over.
func handsOver(t *testing.T, locks, other *core.Locker) {
	t.Helper()
	x := acquire(t, locks, "name", core.WithRenewEvery(ttl/10)) // the TTL is for handshakes on a busy machine
	granted := x.ValidUntil()
	got := make(chan *core.Lease, 1)
	go func() {
		y, err := other.Acquire(t.Context(), "name")
		if err != nil {
			t.Error(err)
		}
		got <- y
	}()
	eventually(t, "it is renewed", func() bool { return x.ValidUntil().After(granted) })
	ok(t, x.Release(t.Context()))
	if y := <-got; y != nil {
		ok(t, y.Release(t.Context()))
	}
}

// noneWithout fails the test if a server at these addresses talks to a client without TLS.
func noneWithout(t *testing.T, addrs ...string) {
	t.Helper()
	for _, addr := range addrs {
		if err := dial(t, &redis.Options{Addr: addr}).Ping(t.Context()).Err(); err == nil {
			t.Errorf("%s answers without TLS", addr)
		}
	}
}

// strangers are clients that have to be refused.
func strangers(t *testing.T, ours *authority) map[string]*tls.Config {
	t.Helper()
	theirs := newAuthority(t)
	return map[string]*tls.Config{
		"a server that nobody vouches for": {RootCAs: theirs.pool, Certificates: []tls.Certificate{ours.pair}},
		"a client without a certificate":   {RootCAs: ours.pool},
		"a client that nobody vouches for": {RootCAs: ours.pool, Certificates: []tls.Certificate{theirs.pair}},
	}
}

func TestLocksWorkOverTLSBySentinel(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	ours := newAuthority(t)
	s := servers.Sentinel(t, "secret", ours.args()...)
	var addrs []string
	for _, w := range s.Sentinels {
		addrs = append(addrs, w.TLSAddr())
	}
	over := func(config *tls.Config) *redis.Client {
		rdb := redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: servers.MasterName, SentinelAddrs: addrs,
			SentinelUsername: "default", SentinelPassword: "secret", Username: "default", Password: "secret",
			TLSConfig: config,
		})
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}
	rdb := over(ours.client())
	locks, other := clusterLocker(t, rdb), clusterLocker(t, over(ours.client()))
	noneWithout(t, append(addrs, s.Nodes[0].TLSAddr(), s.Nodes[1].TLSAddr())...)
	handsOver(t, locks, other)

	x := acquire(t, locks, "name", core.WithRenewEvery(ttl/10))
	ok(t, rdb.Wait(t.Context(), 1, 0).Err()) // the replica has heard of it
	s.Nodes[0].Kill()
	s.AwaitMaster(s.Nodes[1])
	renewed(t, x) // by the new master
	ok(t, x.Release(t.Context()))

	for who, config := range strangers(t, ours) {
		t.Log(who)
		_, err := locker(t, over(config)).TryAcquire(t.Context(), "name")
		is(t, err, core.ErrUnavailable)
	}
}

func TestLocksWorkOverTLSOnACluster(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	ours := newAuthority(t)
	c := servers.Cluster(t, ours.args()...)
	over := func(config *tls.Config) *redis.ClusterClient {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{c.Nodes[0].TLSAddr()}, TLSConfig: config, ContextTimeoutEnabled: true, // finds the others
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}
	rdb := over(ours.client())
	locks, other := clusterLocker(t, rdb), clusterLocker(t, over(ours.client()))
	for _, n := range c.Nodes {
		noneWithout(t, n.TLSAddr())
	}
	handsOver(t, locks, other)
	for i := range 60 { // at all three masters
		ok(t, acquire(t, locks, fmt.Sprintf("name-%d", i)).Release(t.Context()))
	}
	ok(t, rdb.ForEachShard(t.Context(), func(_ context.Context, n *redis.Client) error {
		if !slices.ContainsFunc(c.Nodes, func(s *servers.Server) bool { return s.TLSAddr() == n.Options().Addr }) {
			return fmt.Errorf("the client was sent to %s", n.Options().Addr)
		}
		return nil
	}))
	for who, config := range strangers(t, ours) {
		t.Log(who)
		_, err := locker(t, over(config)).TryAcquire(t.Context(), "name")
		is(t, err, core.ErrUnavailable)
	}
}

// authority vouches for itself, as server and as client.
type authority struct {
	pool              *x509.CertPool
	pair              tls.Certificate
	certFile, keyFile string
}

// client is what one of its clients has.
func (a *authority) client() *tls.Config {
	return &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.pair}, MinVersion: tls.VersionTLS12}
}

// args are those of its servers.
func (a *authority) args() []string {
	return []string{"--tls-cert-file", a.certFile, "--tls-key-file", a.keyFile, "--tls-ca-cert-file", a.certFile}
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
