// Package tools_test says what users of the modules inherit.
package tools_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	repository = ".."
	root       = "github.com/holdfast-go/holdfast"
)

func isOurs(module string) bool { return module == root || strings.HasPrefix(module, root+"/") }

// goes runs the go command in a folder of the repository, and returns what it prints.
func goes(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env, cmd.Stderr = filepath.Join(repository, folder), append(os.Environ(), "GOWORK=off"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// compiled is what the packages of the root module are compiled with, by package: a user inherits no more than
// that of those that are imported. Packages that are not here are compiled with the standard library alone.
var compiled = map[string]string{
	"core/redislock":    "github.com/cespare/xxhash/v2 github.com/redis/go-redis/v9 go.uber.org/atomic",
	"core/telemetry":    "github.com/go-logr/logr github.com/go-logr/stdr go.opentelemetry.io/otel go.opentelemetry.io/otel/metric go.opentelemetry.io/otel/trace",
	"httpmw/redisstore": "github.com/cespare/xxhash/v2 github.com/redis/go-redis/v9 go.uber.org/atomic",
	"httpmw/echo5mw":    "github.com/labstack/echo/v5",
	"httpmw/echomw": "github.com/labstack/echo/v4 github.com/labstack/gommon github.com/mattn/go-colorable github.com/mattn/go-isatty github.com/valyala/bytebufferpool " +
		"github.com/valyala/fasttemplate golang.org/x/crypto golang.org/x/net golang.org/x/sys golang.org/x/text",
}

// required is what the other modules that are released ask for themselves, at which version. Some of it is for
// tests only, and in no program of a user.
var required = map[string]string{
	".": "github.com/alicebob/miniredis/v2 v2.40.0\n" +
		"github.com/labstack/echo/v4 v4.13.2\n" +
		"github.com/labstack/echo/v5 v5.0.3\n" +
		"github.com/redis/go-redis/v9 v9.20.1\n" +
		"go.opentelemetry.io/otel v1.32.0\n" +
		"go.opentelemetry.io/otel/metric v1.32.0\n" +
		"go.opentelemetry.io/otel/trace v1.32.0\n" +
		"go.uber.org/goleak v1.3.0",
	"core/etcdlock": "go.etcd.io/etcd/api/v3 v3.5.33\n" +
		"go.etcd.io/etcd/client/v3 v3.5.33\n" +
		"go.uber.org/goleak v1.3.0\n" +
		"go.uber.org/zap v1.27.0\n" +
		"google.golang.org/grpc v1.82.1",
	"core/memcachedlock": "github.com/bradfitz/gomemcache v0.0.0-20260422231931-4d751bb6e37c\n" +
		"go.uber.org/goleak v1.3.0",
	"core/natslock": "github.com/nats-io/nats.go v1.49.0\n" +
		"go.uber.org/goleak v1.3.0",
	"core/sqllock": "github.com/go-sql-driver/mysql v1.10.1\n" +
		"github.com/jackc/pgx/v5 v5.12.0\n" +
		"modernc.org/sqlite v1.61.1",
	"core/zklock": "github.com/go-zookeeper/zk v1.0.4\n" +
		"go.uber.org/goleak v1.3.0",
	"grpcmw": "go.uber.org/goleak v1.3.0\n" +
		"google.golang.org/genproto/googleapis/rpc v0.0.0-20260414002931-afd174a4e478\n" +
		"google.golang.org/grpc v1.82.1\n" +
		"google.golang.org/protobuf v1.36.11",
	"grpcmw/connectmw": "connectrpc.com/connect v1.14.0\n" +
		"go.uber.org/goleak v1.3.0\n" +
		"google.golang.org/genproto/googleapis/rpc v0.0.0-20260414002931-afd174a4e478\n" +
		"google.golang.org/grpc v1.82.1\n" +
		"google.golang.org/protobuf v1.36.11",
	"httpmw/fibermw": "github.com/gofiber/fiber/v3 v3.2.0\n" +
		"github.com/valyala/fasthttp v1.70.0\n" +
		"go.uber.org/goleak v1.3.0",
	"httpmw/ginmw": "github.com/gin-gonic/gin v1.9.1\n" +
		"go.uber.org/goleak v1.3.0",
	"taskmw": "github.com/hibiken/asynq v0.26.0\n" +
		"github.com/redis/go-redis/v9 v9.20.1\n" +
		"go.uber.org/goleak v1.3.0",
	"taskmw/cronmw": "github.com/go-co-op/gocron/v2 v2.11.0\n" +
		"github.com/google/uuid v1.6.0\n" +
		"github.com/robfig/cron/v3 v3.0.1\n" +
		"go.uber.org/goleak v1.3.0",
	"taskmw/rivermw": "github.com/riverqueue/river/rivertype v0.20.0\n" +
		"go.uber.org/goleak v1.3.0",
	"taskmw/temporalmw": "go.temporal.io/sdk v1.33.0",
	"taskmw/watermillmw": "github.com/ThreeDotsLabs/watermill v1.3.5\n" +
		"go.uber.org/goleak v1.3.0",
	"core/cmd/holdfast": "github.com/bradfitz/gomemcache v0.0.0-20260422231931-4d751bb6e37c\n" +
		"github.com/go-sql-driver/mysql v1.10.1\n" +
		"github.com/go-zookeeper/zk v1.0.4\n" +
		"github.com/jackc/pgx/v5 v5.12.0\n" +
		"github.com/nats-io/nats.go v1.49.0\n" +
		"github.com/redis/go-redis/v9 v9.20.1\n" +
		"go.etcd.io/etcd/api/v3 v3.5.33\n" +
		"go.etcd.io/etcd/client/v3 v3.5.33\n" +
		"go.uber.org/goleak v1.3.0\n" +
		"go.uber.org/zap v1.27.0\n" +
		"golang.org/x/sys v0.49.0\n" +
		"google.golang.org/grpc v1.82.1\n" +
		"modernc.org/sqlite v1.61.1",
}

func TestAUserInheritsOnlyWhatIsImported(t *testing.T) {
	t.Parallel()
	type listed struct {
		ImportPath string
		Module     *struct{ Path string }
		Deps       []string
	}
	of, ours := make(map[string]string), []listed{}
	for d := json.NewDecoder(strings.NewReader(goes(t, ".", "list", "-deps", "-json=ImportPath,Module,Deps", "./..."))); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		switch {
		case p.Module == nil: // the standard library
		case isOurs(p.Module.Path):
			ours = append(ours, p)
		default:
			of[p.ImportPath] = p.Module.Path
		}
	}
	for _, p := range ours {
		needs := make(map[string]bool)
		for _, dep := range p.Deps {
			if module := of[dep]; module != "" {
				needs[module] = true
			}
		}
		folder := strings.TrimPrefix(p.ImportPath, root+"/")
		if strings.Contains(folder+"/", "/internal/") || strings.HasPrefix(folder, "internal/") {
			continue // it is in what imports it
		}
		if got := strings.Join(slices.Sorted(maps.Keys(needs)), " "); got != compiled[folder] {
			t.Errorf("%s is compiled with %q, not %q", folder, got, compiled[folder])
		}
	}
}

// A module is released unless the first line of its go.mod says that it is not.
func TestModulesRequireNoMoreThanThis(t *testing.T) {
	t.Parallel()
	all := os.DirFS(repository)
	found := 0
	err := fs.WalkDir(all, ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if err != nil || d.Name() != "go.mod" {
			return err
		}
		text, err := fs.ReadFile(all, file)
		if err != nil || strings.HasPrefix(string(text), "// Not released") {
			return err
		}
		found++
		folder := path.Dir(file)
		var mod struct {
			Require []struct {
				Path, Version string
				Indirect      bool
			}
		}
		var needs []string
		err = json.Unmarshal([]byte(goes(t, folder, "mod", "edit", "-json")), &mod)
		for _, r := range mod.Require {
			if !r.Indirect && !isOurs(r.Path) {
				needs = append(needs, r.Path+" "+r.Version)
			}
		}
		if got := strings.Join(needs, "\n"); got != required[folder] {
			t.Errorf("%q: `%s`,", folder, got)
		}
		return err
	})
	if err != nil || found != len(required) {
		t.Errorf("%d modules are released, and %d are here: %v", found, len(required), err)
	}
}
