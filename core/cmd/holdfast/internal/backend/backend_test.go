package backend

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/natslock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// works takes and releases a name through a URL, and finds that its place has no password.
func works(t *testing.T, url, password string, create bool) {
	t.Helper()
	b, err := Open(t.Context(), url, Options{Create: create, Password: password})
	backendtest.OK(t, err)
	defer b.Close()
	if b.Schema != "" && !create {
		t.Fatalf("%s: a schema has to be made", url)
	}
	locks, err := core.New(b.Driver)
	backendtest.OK(t, err)
	defer locks.Close(context.Background()) //nolint:errcheck // the work says it
	ran := false
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := locks.Do(ctx, "job", func(context.Context) error { ran = true; return nil }); err != nil || !ran {
		t.Errorf("%s: %v", url, err)
	}
	if strings.Contains(b.Place, "hunter2") || strings.Contains(b.Place, "=") {
		t.Errorf("%s: place %s", url, b.Place)
	}
}

func TestEveryKindOfURLOpensItsService(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		s := servers.Redis(t, "--requirepass", "hunter2")
		works(t, "redis://:hunter2@"+s.Addr(), "", false)
		works(t, "redis://default:hunter2@"+s.Addr()+"/3?prefix=a:&pool_size=2", "", false)
		works(t, "redis://"+s.Addr()+"/?prefix=", "hunter2", false)
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := servers.Cluster(t)
		works(t, "redis+cluster://"+strings.Join(c.Addrs(), ",")+"?prefix=a:", "", false)
	})
	t.Run("redlock", func(t *testing.T) {
		t.Parallel()
		var hosts []string
		for range 3 {
			hosts = append(hosts, servers.Redis(t, "--requirepass", "hunter2").Addr())
		}
		works(t, "redlock://:hunter2@"+strings.Join(hosts, ",")+"?prefix=a:&fence=on", "", false)
		works(t, "redlock://"+strings.Join(hosts, ",")+"/3", "hunter2", false)
	})
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		s := servers.Sentinel(t, "hunter2")
		works(t, "redis+sentinel://:hunter2@"+strings.Join(s.Addrs(), ",")+"/"+servers.MasterName+"?sentinel_password=hunter2", "", false)
		works(t, "redis+sentinel://"+strings.Join(s.Addrs(), ",")+"/"+servers.MasterName+"/2?sentinel_password=hunter2", "hunter2", false)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s := servers.Postgres(t)
		url := "postgres://postgres@" + s.Addr() + "/postgres?sslmode=disable&table=a_table"
		makeTable(t, url)
		works(t, url, "", true)
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		s := servers.MariaDB(t)
		url := "mysql://root@" + s.Addr() + "/test"
		makeTable(t, url)
		works(t, url, "", true)
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "a file?.db")
		escaped := strings.NewReplacer(" ", "%20", "?", "%3f").Replace(file)
		if _, err := Open(t.Context(), "sqlite:"+escaped, Options{}); err == nil || !strings.Contains(err.Error(), "run makes it") {
			t.Errorf("a file that is missing: %v", err)
		}
		works(t, "sqlite:"+escaped, "", true)
		works(t, "sqlite://"+escaped+"?table=other", "", true)
		b, err := Open(t.Context(), "sqlite:"+escaped, Options{})
		backendtest.OK(t, err)
		b.Close()
	})
	t.Run("etcd", func(t *testing.T) {
		t.Parallel()
		works(t, "etcd://"+servers.Etcd(t).Addr()+"?prefix=a/", "", false)
	})
	t.Run("nats", func(t *testing.T) {
		t.Parallel()
		url := "nats://" + servers.NATS(t).Addr()
		makeBucket(t, url, "holdfast")
		makeBucket(t, url, "other")
		works(t, url, "", false)
		works(t, url+"/other", "", false)
	})
	t.Run("zookeeper", func(t *testing.T) {
		t.Parallel()
		s := servers.ZooKeeper(t)
		works(t, "zk://"+s.Addr(), "", false)
		works(t, "zk://u:hunter2@"+s.Addr()+"/a/b", "", false)
	})
	t.Run("memcached", func(t *testing.T) {
		t.Parallel()
		works(t, "memcached://"+servers.Memcached(t).Addr()+"?prefix=a:", "", false)
	})
}

// makeBucket does what an operator of NATS does.
func makeBucket(t *testing.T, url, bucket string) {
	t.Helper()
	conn, err := nats.Connect(url)
	backendtest.OK(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	backendtest.OK(t, err)
	if _, err := js.CreateKeyValue(t.Context(), natslock.Bucket(bucket, 1)); err != nil {
		t.Fatal(err)
	}
}

// makeTable does what holdfast schema and a client of the database do.
func makeTable(t *testing.T, url string) {
	t.Helper()
	b, err := Open(t.Context(), url, Options{})
	backendtest.OK(t, err)
	defer b.Close()
	if _, err := b.db.ExecContext(t.Context(), b.Schema); err != nil {
		t.Fatal(err)
	}
}

func TestAURLThatMakesNoSenseIsAnErrorThatSaysWhy(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                           "of the form",
		"localhost:6379":             "of the form",
		"//h":                        "of the form",
		"http://h":                   "these are known: etcd,",
		"redis://h:x":                "of the form",
		"redis://a,b":                "redis+cluster",
		"redis://a,,b":               "of the form",
		"redis://h/x":                "number of a database",
		"redis://h?frob=1":           "does not take",
		"redis://h?replicas=x":       "not a number",
		"redis://h?servercheck=x":    "neither on nor off",
		"redis://h#f":                "of the form",
		"redis://h?%zz":              "of the form",
		"redis+sentinel:///m":        "no host",
		"redis+sentinel://h":         "name of the master",
		"redis+sentinel://h/m/x":     "number of a database",
		"redis+cluster://h/1":        "no databases",
		"redlock://a,b":              "at least 3",
		"redlock:///0":               "no host",
		"redlock://a,b,a":            "there twice",
		"redlock://a,b,c?fence=yes":  "neither on nor off",
		"redlock://a,b,c?replicas=1": "without replicas",
		"redlock://a,b,c/x":          "number of a database",
		"postgres://h/d?sslmode=x":   "pgx does not take",
		"postgres://h/d?table=a-b":   "WithTable",
		"postgres://h/d?prefix=a:":   "use table=",
		"mysql://h/d?prefix=a:":      "use table=",
		"sqlite:f?prefix=a:":         "use table=",
		"nats://h?prefix=a":          "a bucket of its own",
		"zk://h?prefix=/a":           "a root of its own",
		"mysql://a,b/d":              "several hosts",
		"mysql://h/d?parseTime=x":    "does not take a parameter",
		"sqlite:":                    "sqlite:file",
		"sqlite://host/file":         "sqlite:file",
		"etcd://h/prefix":            "use prefix=",
		"etcd://h?frob=1":            `unknown parameter "frob"`,
		"nats://h?frob=1":            `unknown parameter "frob"`,
		"nats://u:p@h?creds=f":       "either a user or creds=",
		"nats+tls://h?cacert=/none":  "no such file",
		"etcds://h?cacert=/none":     "no such file",
		"zk://h?frob=1":              `unknown parameter "frob"`,
		"memcached://u:p@h":          "neither a path nor users",
		"memcached://h/path":         "neither a path nor users",
	} {
		b, err := Open(t.Context(), url, Options{})
		if err == nil {
			b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, core.ErrUnavailable) {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// Each of these ends the host of a URL, if it is not percent-encoded: what follows it in a password is then a path,
// a parameter or a fragment.
func TestNoPartOfAPasswordThatIsNotEncodedIsShown(t *testing.T) {
	t.Parallel()
	for _, scheme := range Schemes() {
		if scheme == "sqlite" { // which has no password
			continue
		}
		for _, password := range []string{"123?secret", "123?secret=x", "123?x=secret", "123?x&secret", "123/secret", "123/0?secret", "123#secret", "secret?123", "secret?x=1", "1@secret?2"} {
			url := scheme + "://root:" + password + "@127.0.0.1:1/1"
			b, err := Open(t.Context(), url, Options{})
			if err == nil {
				b.Close()
			}
			if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "percent-encoded") {
				t.Errorf("%s: %v", url, err)
			}
		}
	}
}

func TestAZooKeeperThatDoesNotAnswerIsUnavailable(t *testing.T) {
	t.Parallel()
	if _, err := Open(t.Context(), "zk://127.0.0.1:1", Options{}); !errors.Is(err, core.ErrUnavailable) {
		t.Error(err)
	}
}

func TestAnEtcdThatDoesNotAnswerALogInIsUnavailable(t *testing.T) {
	t.Parallel()
	if _, err := Open(t.Context(), "etcd://u:hunter2@127.0.0.1:1", Options{}); !errors.Is(err, core.ErrUnavailable) {
		t.Error(err)
	}
	for _, err := range []error{context.DeadlineExceeded, rpctypes.ErrNoLeader, rpctypes.ErrTimeout, status.Error(codes.Unavailable, ""), status.Error(codes.DeadlineExceeded, "")} {
		if !unanswered(err) {
			t.Error(err)
		}
	}
	for _, err := range []error{context.Canceled, rpctypes.ErrAuthFailed, status.Error(codes.Unimplemented, ""), errors.ErrUnsupported} {
		if unanswered(err) {
			t.Error(err)
		}
	}
}

// FuzzOpen has any URL around a password: no error shows it.
func FuzzOpen(f *testing.F) {
	for _, seed := range [][2]string{
		{"redis://u:", "@127.0.0.1:6379/1"}, {"rediss://:", "@host?read_timeout=1s"}, {"redis://u:", "/@h"}, {"redis://u:1/", "@h"},
		{"redis://h?", "=1"}, {"redis://:", "@%zz"}, {"redis+sentinel://u:", "@a,b/m"}, {"redis+cluster://u:", "@a:x,b"},
		{"redlock://u:", "@a,b,c"}, {"redlock://u:", "@a,b"}, {"postgres://u:", "@h/d"}, {"postgres://u:", "@h/d?sslmode=x"}, {"mysql://u:", "@h/d?timeout=x"}, {"sqlite:?key=", ""},
		{"etcd://u:", "@h"}, {"nats://u:", "@127.0.0.1:1"}, {"memcached://u:", "@h"}, {"http://u:", "@h"}, {"postgres://h/d?password=", ""}, {"postgres://u:", "#@h"},
		{"etcd://root:123?", "@127.0.0.1:1"}, {"redis://root:123?x=", "@127.0.0.1:1"}, {"nats://root:123?a&", "@127.0.0.1:1"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "hunter2"
		scheme, _, found := strings.Cut(before, ":")
		switch strings.ToLower(scheme) {
		case "zk", "memcached", "sqlite": // these ask the network, or have no password
			return
		}
		b, err := Open(t.Context(), before+secret+after, Options{Password: secret})
		if err == nil {
			b.Close()
		} else if found && strings.Contains(err.Error(), secret) {
			t.Errorf("%q %q: %v", before, after, err)
		}
	})
}
