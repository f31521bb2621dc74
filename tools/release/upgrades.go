package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
)

// lastYear is a service with the versions of a year ago, and code that uses all of them.
var lastYear = []string{
	"github.com/alicebob/miniredis/v2@v2.34.0",
	"github.com/hibiken/asynq@v0.25.1",
	"github.com/labstack/echo/v4@v4.13.3",
	"github.com/redis/go-redis/v9@v9.7.3",
	"go.opentelemetry.io/otel@v1.34.0",
	"go.opentelemetry.io/otel/trace@v1.34.0",
	"google.golang.org/grpc@v1.70.0",
}

// additions are what the service adds, each from the beginning.
var additions = []struct {
	title    string
	packages []string
}{
	{"core, redislock, echomw", []string{"core", "core/redislock", "httpmw/echomw"}},
	{"also taskmw", []string{"core", "core/redislock", "httpmw/echomw", "taskmw"}},
	{"also grpcmw", []string{"core", "core/redislock", "httpmw/echomw", "taskmw", "grpcmw"}},
}

// upgrades looks what the service's own dependencies become, and compares that with the table in a page.
func (s *stage) upgrades(ctx context.Context, page string, write bool) error {
	before, err := s.service(ctx, nil)
	if err != nil {
		return err
	}
	var after []map[string]string
	head, rule := "| module | before |", "|---|---|"
	for _, a := range additions {
		versions, err := s.service(ctx, a.packages)
		if err != nil {
			return err
		}
		after = append(after, versions)
		head, rule = head+" "+a.title+" |", rule+"---|"
	}
	var table strings.Builder
	table.WriteString(head + "\n" + rule + "\n")
	for _, dependency := range lastYear {
		path, _, _ := strings.Cut(dependency, "@")
		row := "| `" + path + "` | " + before[path] + " |"
		last := before[path]
		for _, versions := range after {
			cell := "–"
			if versions[path] != last {
				cell = "**" + versions[path] + "**"
			}
			row, last = row+" "+cell+" |", versions[path]
		}
		table.WriteString(row + "\n")
	}
	return compare(page, table.String(), write)
}

// service makes the service, adds packages of ours, and returns which versions it then has.
func (s *stage) service(ctx context.Context, packages []string) (map[string]string, error) {
	dir, err := s.project(ctx)
	if err != nil {
		return nil, err
	}
	var code strings.Builder
	code.WriteString("package main\n\nimport (\n")
	for _, dependency := range lastYear {
		path, _, _ := strings.Cut(dependency, "@")
		fmt.Fprintf(&code, "\t_ %q\n", path)
	}
	get := append([]string{"get"}, lastYear...)
	var ours []string
	for _, p := range packages {
		fmt.Fprintf(&code, "\t_ %q\n", root+"/"+p)
		ours = append(ours, root+"/"+p+"@"+s.version)
	}
	code.WriteString(")\n\nfunc main() {}\n")
	steps := [][]string{get}
	if len(ours) > 0 {
		steps = append(steps, append([]string{"get"}, ours...))
	}
	for _, step := range append(steps, []string{"mod", "tidy"}, []string{"build", "-o", os.DevNull, "."}) {
		if step[0] == "mod" { // now it has code
			if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(code.String()), 0o600); err != nil {
				return nil, err
			}
		}
		if _, err := output(ctx, dir, s.consumerEnv(ctx), "go", step...); err != nil {
			return nil, err
		}
	}
	list, err := output(ctx, dir, s.consumerEnv(ctx), "go", "list", "-m", "-f", "{{.Path}} {{.Version}}", "all")
	versions := make(map[string]string)
	for line := range strings.Lines(list) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		versions[path] = version
	}
	return versions, err
}

const (
	begin = "<!-- upgrades: begin -->\n"
	end   = "<!-- upgrades: end -->"
)

func compare(page, table string, write bool) error {
	text, err := os.ReadFile(page) //nolint:gosec // G304: a page of ours
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	shown, after, ended := strings.Cut(rest, end)
	switch {
	case !found || !ended:
		return errors.New(page + " has no place for the table")
	case shown == table:
		log.Print("a service of last year gets the upgrades that docs/install.md says")
		return nil
	case write:
		return os.WriteFile(page, []byte(before+begin+table+end+after), 0o644) //nolint:gosec // G306: a document
	default:
		return fmt.Errorf("%s says otherwise than what was found (write it with -write):\n%s", page, table)
	}
}
