package migration_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/migration"
)

// issuer is a certificate authority that counts.
type issuer struct {
	key    *ecdsa.PrivateKey
	issued atomic.Int32
	inside atomic.Int32
	most   atomic.Int32
}

func (*issuer) IssuerKey() string { return "test" }

func (i *issuer) Issue(_ context.Context, request *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if n := i.inside.Add(1); n > i.most.Load() {
		i.most.Store(n)
	}
	defer i.inside.Add(-1)
	i.issued.Add(1)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(i.issued.Load())),
		DNSNames:     request.DNSNames,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, i.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// node is one server of a cluster, with certmagic as it is.
func node(t *testing.T, storage certmagic.Storage, ca certmagic.Issuer) *certmagic.Config {
	t.Helper()
	var config *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil },
	})
	t.Cleanup(cache.Stop)
	config = certmagic.New(cache, certmagic.Config{Storage: storage, Issuers: []certmagic.Issuer{ca}})
	return config
}

// obtainEverywhere has all nodes want the same certificate at once.
func obtainEverywhere(t *testing.T, storages ...certmagic.Storage) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	ca := &issuer{key: key}
	var all sync.WaitGroup
	for _, storage := range storages {
		config := node(t, storage, ca)
		all.Go(func() {
			if err := config.ObtainCertSync(t.Context(), "example.com"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if issued, most := ca.issued.Load(), ca.most.Load(); issued != 1 || most != 1 {
		t.Errorf("%d certificates, %d at once; want one", issued, most)
	}
}

func TestOneNodeOfManyObtainsTheCertificate(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	files := &certmagic.FileStorage{Path: t.TempDir()}
	var storages []certmagic.Storage
	for range 4 {
		storages = append(storages, migration.NewCertmagicStorage(files, lockerOf(t, dial(t, share.Addr), share.Prefix)))
	}
	obtainEverywhere(t, storages...)
}

func TestNodesWithTheOldLockAndWithBothExcludeEachOther(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	old := &certmagic.FileStorage{Path: t.TempDir()}
	both := migration.NewCertmagicStorage(old, lockerOf(t, dial(t, share.Addr), share.Prefix)).AlsoLock(old)
	obtainEverywhere(t, old, both)

	ctx := t.Context()
	for what, two := range map[string][2]certmagic.TryLocker{"the old one first": {old, both}, "both first": {both, old}} {
		if ok, err := two[0].TryLock(ctx, "a"); !ok || err != nil {
			t.Fatalf("%s: %v, %v", what, ok, err)
		}
		bounded, cancel := context.WithTimeout(ctx, 2500*time.Millisecond) // FileStorage waits up to two seconds
		if ok, err := two[1].TryLock(bounded, "a"); ok || err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: the second: %v, %v", what, ok, err)
		}
		cancel()
		if err := two[0].Unlock(ctx, "a"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestLockWaitsForUnlockAndNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"another node", "this node"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			locks := memory(t)
			one := migration.NewCertmagicStorage(nil, locks)
			two := one
			if who == "another node" {
				two = migration.NewCertmagicStorage(nil, locks)
			}
			if err := one.Lock(t.Context(), "*.example.com"); err != nil {
				t.Fatal(err)
			}
			if ok, err := two.TryLock(t.Context(), "*.example.com"); ok || err != nil {
				t.Errorf("TryLock: %v, %v", ok, err)
			}
			bounded, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if err := two.Lock(bounded, "*.example.com"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Lock: %v", err)
			}
			got := make(chan error, 1)
			go func() { got <- two.Lock(t.Context(), "*.example.com") }()
			if err := one.Unlock(t.Context(), "*.example.com"); err != nil {
				t.Error(err)
			}
			if err := <-got; err != nil {
				t.Error(err)
			}
			if err := two.Unlock(t.Context(), "*.example.com"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnlockOfWhatIsNotLockedIsAnError(t *testing.T) {
	t.Parallel()
	storage := migration.NewCertmagicStorage(nil, memory(t))
	if storage.Unlock(t.Context(), "a") == nil {
		t.Error("Unlock: nil")
	}
	if storage.RenewLockLease(t.Context(), "a", time.Minute) == nil {
		t.Error("RenewLockLease: nil")
	}
}

// certmagic stops a certificate's work when a renewal of the lock fails.
func TestALossIsWhatRenewLockLeaseSays(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, share.Addr)
	storage := migration.NewCertmagicStorage(nil, lockerOf(t, rdb, share.Prefix, core.WithRenewEvery(20*time.Millisecond)))
	ok(t, storage.Lock(t.Context(), "a"))
	if err := storage.RenewLockLease(t.Context(), "a", time.Minute); err != nil {
		t.Error(err)
	}
	ok(t, rdb.Del(t.Context(), share.Prefix+"certmagic:a").Err())
	for storage.RenewLockLease(t.Context(), "a", time.Minute) == nil {
		time.Sleep(time.Millisecond)
	}
	// Nobody of this process comes in before the Unlock of the loser.
	if ok, err := storage.TryLock(t.Context(), "a"); ok || err != nil {
		t.Errorf("TryLock: %v, %v", ok, err)
	}
	if err := storage.Unlock(t.Context(), "a"); !errors.Is(err, core.ErrLost) {
		t.Errorf("Unlock: %v", err)
	}
	if ok, err := storage.TryLock(t.Context(), "a"); !ok || err != nil {
		t.Errorf("TryLock after Unlock: %v, %v", ok, err)
	}
	if err := storage.Unlock(t.Context(), "a"); err != nil {
		t.Errorf("the second Unlock: %v", err)
	}
}
