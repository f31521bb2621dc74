package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
)

// try installs the release as its users would: each module, each program, and what README and the first steps show.
func (s *stage) try(ctx context.Context) error {
	var failed []error
	for _, m := range s.released {
		if err := s.install(ctx, m); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.path, err))
			continue
		}
		log.Printf("installed %s", m.path)
	}
	// The guides share one file, but for testing.md, whose tests run. So functions.md stands for all of them.
	for _, page := range []string{"README.md", "README.zh-CN.md", "docs/getting-started.md", "docs/guides/functions.md", "docs/guides/testing.md"} {
		if err := s.snippets(ctx, page); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", page, err))
			continue
		}
		log.Printf("built and ran what %s shows", page)
	}
	return errors.Join(failed...)
}

// project makes an empty project of somebody else.
func (s *stage) project(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp(s.work, "project-")
	if err != nil {
		return "", err
	}
	_, err = output(ctx, dir, s.consumerEnv(ctx), "go", "mod", "init", "example.test/project")
	return dir, err
}

// install adds a module to an empty project that imports all its packages, and installs its programs.
func (s *stage) install(ctx context.Context, m module) error {
	packages, programs, err := s.packages(ctx, m)
	if err != nil {
		return err
	}
	dir, err := s.project(ctx)
	if err != nil {
		return err
	}
	var file strings.Builder
	file.WriteString("package main\n\nimport (\n")
	for _, p := range packages {
		fmt.Fprintf(&file, "\t_ %q\n", p)
	}
	file.WriteString(")\n\nfunc main() {}\n")
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(file.String()), 0o600); err != nil {
		return err
	}
	steps := [][]string{{"get", m.path + "@" + s.version}, {"mod", "tidy"}, {"build", "-o", os.DevNull, "."}}
	for _, program := range programs {
		steps = append(steps, []string{"install", program + "@" + s.version})
	}
	for _, step := range steps {
		if _, err := output(ctx, dir, append(s.consumerEnv(ctx), "GOBIN="+filepath.Join(s.work, "bin")), "go", step...); err != nil {
			return err
		}
	}
	return nil
}

// packages are those that others can import, and the programs.
func (s *stage) packages(ctx context.Context, m module) (packages, programs []string, err error) {
	list, err := s.goTool(ctx, m, nil, "list", "-f", "{{if .GoFiles}}{{.Name}} {{.ImportPath}}{{end}}", "./...")
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.Lines(list) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "main":
			programs = append(programs, path)
		case path != "" && !strings.Contains(path+"/", "/internal/"):
			packages = append(packages, path)
		}
	}
	return packages, programs, nil
}

// snippets does what a page says: its "go get" lines in an empty project, and then its code, with its tests. The comment
// above the code names the file that has all of it; a test of the examples compares the two.
func (s *stage) snippets(ctx context.Context, page string) error {
	text, err := os.ReadFile(filepath.Join(s.dir, page)) //nolint:gosec // G304: a page of ours
	if err != nil {
		return err
	}
	dir, err := s.project(ctx)
	if err != nil {
		return err
	}
	files := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if path, found := strings.CutPrefix(line, "go get "); found {
			if _, err := output(ctx, dir, s.consumerEnv(ctx), "go", "get", path+"@"+s.version); err != nil {
				return err
			}
		}
		if file, found := strings.CutPrefix(line, "<!-- examples/"); found {
			files++
			if err := s.copyCode(strings.TrimSuffix(file, " -->"), dir); err != nil {
				return err
			}
		}
	}
	if files == 0 {
		return errors.New("it names no file with code")
	}
	// What else the code imports, such as Echo, is in the project that has such code, with that version.
	if _, err := output(ctx, dir, s.consumerEnv(ctx), "go", "mod", "tidy"); err != nil {
		return err
	}
	if _, err := output(ctx, dir, s.consumerEnv(ctx), "go", "vet", "."); err != nil {
		return err
	}
	_, err = output(ctx, dir, s.consumerEnv(ctx), "go", "test", ".")
	return err
}

// copyCode brings a file of the examples into a project, and with it the code that protoc has generated for it.
func (s *stage) copyCode(name, dir string) error {
	const theirs, ours = `"example.test/project/shoppb"`, `"github.com/holdfast-go/holdfast/examples/demo/shoppb"`
	code, err := os.ReadFile(filepath.Join(s.dir, "examples", name)) //nolint:gosec // G304: code of ours
	if err != nil {
		return err
	}
	if bytes.Contains(code, []byte(ours)) {
		code = bytes.ReplaceAll(code, []byte(ours), []byte(theirs))
		if err := os.CopyFS(filepath.Join(dir, "shoppb"), os.DirFS(filepath.Join(s.dir, "examples", "demo", "shoppb"))); err != nil {
			return err
		}
	}
	if name == "pages_code_test.go" { // it uses the handler of the README
		if err := s.copyCode("readme_code_test.go", dir); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, filepath.Base(name)), code, 0o600) //nolint:gosec // G703: as above
}
