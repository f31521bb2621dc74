package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// root is the path of the root module, and how those of all others begin.
const root = "github.com/holdfast-go/holdfast"

func isOurs(module string) bool { return module == root || strings.HasPrefix(module, root+"/") }

// module is one of this repository.
type module struct {
	path    string
	needs   []string // which of our modules its go.mod requires
	private bool     // not released
}

// folder is where the module is in the repository.
func (m module) folder() string { return path.Join(".", strings.TrimPrefix(m.path, root)) }

// tag is what the go command looks for.
func (m module) tag(version string) string { return path.Join(m.folder(), version) }

// modules returns all modules below dir, each after those that it needs.
func modules(ctx context.Context, dir string) ([]module, error) {
	var all []module
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != dir && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.Name() != "go.mod":
			return nil
		}
		m, err := read(ctx, file)
		if err == nil {
			all = append(all, m)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return inOrder(all)
}

func read(ctx context.Context, file string) (module, error) {
	text, err := os.ReadFile(file) //nolint:gosec // G304: a go.mod of ours
	if err != nil {
		return module{}, err
	}
	described, err := output(ctx, filepath.Dir(file), nil, "go", "mod", "edit", "-json")
	if err != nil {
		return module{}, err
	}
	var mod struct {
		Module  struct{ Path string }
		Require []struct{ Path string }
	}
	if err := json.Unmarshal([]byte(described), &mod); err != nil {
		return module{}, err
	}
	m := module{path: mod.Module.Path, private: strings.HasPrefix(string(text), "// Not released")}
	for _, r := range mod.Require {
		if isOurs(r.Path) {
			m.needs = append(m.needs, r.Path)
		}
	}
	return m, nil
}

func inOrder(all []module) ([]module, error) {
	slices.SortFunc(all, func(a, b module) int { return cmp.Compare(a.path, b.path) })
	var sorted []module
	done := make(map[string]bool)
	for len(sorted) < len(all) {
		before := len(sorted)
		for _, m := range all {
			if !done[m.path] && !slices.ContainsFunc(m.needs, func(need string) bool { return !done[need] }) {
				sorted, done[m.path] = append(sorted, m), true
			}
		}
		if len(sorted) == before {
			return nil, fmt.Errorf("modules that need each other in a circle, or one that is not there; fine are %v", sorted)
		}
	}
	return sorted, nil
}
