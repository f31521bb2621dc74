// Package tools_test says what users of the modules inherit.
package tools_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const root = "github.com/holdfast-go/holdfast"

func isOurs(module string) bool { return module == root || strings.HasPrefix(module, root+"/") }

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

func TestAUserInheritsOnlyWhatIsImported(t *testing.T) {
	t.Parallel()
	type listed struct {
		ImportPath string
		Module     *struct{ Path string }
		Deps       []string
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Module,Deps", "./...")
	cmd.Dir, cmd.Env, cmd.Stderr = "..", append(os.Environ(), "GOWORK=off"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	of, ours := make(map[string]string), []listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
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
