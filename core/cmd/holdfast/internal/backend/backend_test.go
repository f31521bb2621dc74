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
	for kind, opens := range map[string]func(t *testing.T){
		"redis": func(t *testing.T) {
			s := servers.Redis(t, "--requirepass", "hunter2")
			works(t, "redis://:hunter2@"+s.Addr(), "", false)
			works(t, "redis://default:hunter2@"+s.Addr()+"/3?prefix=a:&pool_size=2", "", false)
			works(t, "redis://"+s.Addr()+"/?prefix=", "hunter2", false)
		},
		"cluster": func(t *testing.T) {
			works(t, "redis+cluster://"+strings.Join(servers.Cluster(t).Addrs(), ",")+"?prefix=a:", "", false)
		},
		"redlock": func(t *testing.T) {
			var hosts []string
			for range 3 {
				hosts = append(hosts, servers.Redis(t, "--requirepass", "hunter2").Addr())
			}
			works(t, "redlock://:hunter2@"+strings.Join(hosts, ",")+"?prefix=a:&fence=on", "", false)
			works(t, "redlock://"+strings.Join(hosts, ",")+"/3", "hunter2", false)
		},
		"sentinel": func(t *testing.T) {
			at := strings.Join(servers.Sentinel(t, "hunter2").Addrs(), ",") + "/" + servers.MasterName
			works(t, "redis+sentinel://:hunter2@"+at+"?sentinel_password=hunter2", "", false)
			works(t, "redis+sentinel://"+at+"/2?sentinel_password=hunter2", "hunter2", false)
		},
		"postgres": func(t *testing.T) {
			url := "postgres://postgres@" + servers.Postgres(t).Addr() + "/postgres?sslmode=disable&table=a_table"
			makeTable(t, url)
			works(t, url, "", true)
		},
		"mysql": func(t *testing.T) {
			url := "mysql://root@" + servers.MariaDB(t).Addr() + "/test"
			makeTable(t, url)
			works(t, url, "", true)
		},
		"sqlite": func(t *testing.T) {
			file := strings.NewReplacer(" ", "%20", "?", "%3f").Replace(filepath.Join(t.TempDir(), "a file?.db"))
			if _, err := Open(t.Context(), "sqlite:"+file, Options{}); err == nil || !strings.Contains(err.Error(), "run makes it") {
				t.Errorf("a file that is missing: %v", err)
			}
			works(t, "sqlite:"+file, "", true)
			works(t, "sqlite://"+file+"?table=other", "", true)
			b, err := Open(t.Context(), "sqlite:"+file, Options{})
			backendtest.OK(t, err)
			b.Close()
		},
		"etcd": func(t *testing.T) { works(t, "etcd://"+servers.Etcd(t).Addr()+"?prefix=a/", "", false) },
		"nats": func(t *testing.T) {
			url := "nats://" + servers.NATS(t).Addr()
			makeBucket(t, url, "holdfast")
			makeBucket(t, url, "other")
			works(t, url, "", false)
			works(t, url+"/other", "", false)
		},
		"zookeeper": func(t *testing.T) {
			s := servers.ZooKeeper(t)
			works(t, "zk://"+s.Addr(), "", false)
			works(t, "zk://u:hunter2@"+s.Addr()+"/a/b", "", false)
		},
		"memcached": func(t *testing.T) { works(t, "memcached://"+servers.Memcached(t).Addr()+"?prefix=a:", "", false) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			opens(t)
		})
	}
}

// makeBucket does what an operator of NATS does.
func makeBucket(t *testing.T, url, bucket string) {
	t.Helper()
	conn, err := nats.Connect(url)
	backendtest.OK(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	backendtest.OK(t, err)
	_, err = js.CreateKeyValue(t.Context(), natslock.Bucket(bucket, 1))
	backendtest.OK(t, err)
}

// makeTable does what holdfast schema and a client of the database do.
func makeTable(t *testing.T, url string) {
	t.Helper()
	b, err := Open(t.Context(), url, Options{})
	backendtest.OK(t, err)
	defer b.Close()
	_, err = b.db.ExecContext(t.Context(), b.Schema)
	backendtest.OK(t, err)
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

func TestAServiceThatDoesNotAnswerALogInIsUnavailable(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"zk://127.0.0.1:1", "etcd://u:hunter2@127.0.0.1:1"} {
		if _, err := Open(t.Context(), url, Options{}); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("%s: %v", url, err)
		}
	}
	for err, want := range map[error]bool{
		context.DeadlineExceeded: true, rpctypes.ErrNoLeader: true, rpctypes.ErrTimeout: true, status.Error(codes.Unavailable, ""): true,
		status.Error(codes.DeadlineExceeded, ""): true,
		context.Canceled:                         false, rpctypes.ErrAuthFailed: false, status.Error(codes.Unimplemented, ""): false, errors.ErrUnsupported: false,
	} {
		if unanswered(err) != want {
			t.Errorf("%v: unanswered %t", err, !want)
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
