package redislock_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

func TestLocksWorkOverTLSWithThoseWhoProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	ours, addr := tlsRedis(t)
	over := func(config *tls.Config) *redis.Client { return dial(t, &redis.Options{Addr: addr, TLSConfig: config}) }
	proven := &tls.Config{RootCAs: ours.pool, Certificates: []tls.Certificate{ours.pair}}
	locks, other := locker(t, over(proven)), locker(t, over(proven))

	x := acquire(t, locks, "name")
	got := make(chan *core.Lease, 1)
	go func() {
		y, err := other.Acquire(t.Context(), "name")
		if err != nil {
			t.Error(err)
		}
		got <- y
	}()
	lasts(t, x)
	ok(t, x.Release(t.Context()))
	if y := <-got; y != nil {
		ok(t, y.Release(t.Context()))
	}

	strangers := newAuthority(t)
	for who, config := range map[string]*tls.Config{
		"a server that nobody vouches for": {RootCAs: strangers.pool, Certificates: []tls.Certificate{ours.pair}},
		"a client without a certificate":   {RootCAs: ours.pool},
		"a client that nobody vouches for": {RootCAs: ours.pool, Certificates: []tls.Certificate{strangers.pair}},
	} {
		t.Log(who)
		_, err := locker(t, over(config)).TryAcquire(t.Context(), "name")
		is(t, err, core.ErrUnavailable)
	}
}

// tlsRedis is a server that speaks TLS at an address of its own, with clients of its authority.
func tlsRedis(t *testing.T) (a *authority, addr string) {
	t.Helper()
	a = newAuthority(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	ok(t, err)
	addr = l.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	ok(t, err)
	ok(t, l.Close())
	servers.Redis(t, "--tls-port", port, "--tls-auth-clients", "yes",
		"--tls-cert-file", a.certFile, "--tls-key-file", a.keyFile, "--tls-ca-cert-file", a.certFile)
	return a, addr
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
