package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// serve adds a module, as its tag names it, to the folder that is served as a proxy. The go command itself makes the
// files: it is told that the clone is the repository on GitHub.
func (s *stage) serve(ctx context.Context, m module) error {
	_, err := output(ctx, s.work, []string{
		"GOMODCACHE=" + s.proxy,
		"GOPROXY=direct", "GONOSUMDB=" + root, "GOFLAGS=", "GOWORK=off",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + s.dir + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + root,
	}, "go", "mod", "download", m.path+"@"+s.version)
	return err
}

// consumerEnv is the environment of somebody who installs the release: our modules come from the folder, and all
// others from this machine's module cache or from its usual proxy.
func (s *stage) consumerEnv(ctx context.Context, flags ...string) []string {
	cache, _ := output(ctx, s.work, nil, "go", "env", "GOMODCACHE")
	proxy, _ := output(ctx, s.work, nil, "go", "env", "GOPROXY")
	return []string{
		"GOMODCACHE=" + filepath.Join(s.work, "modcache"),
		"GOPROXY=" + strings.Join([]string{served(s.proxy), served(cache), proxy}, ","),
		"GONOSUMDB=" + root + "," + os.Getenv("GONOSUMDB"),
		"GOFLAGS=" + strings.Join(flags, " "), "GOWORK=off",
	}
}

// served is the URL of what the go command has downloaded into a module cache.
func served(cache string) string { return "file://" + filepath.Join(cache, "cache", "download") }
