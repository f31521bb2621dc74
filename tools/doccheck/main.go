// Command doccheck looks at the documentation of the packages in a module, as pkg.go.dev shows it:
//
//	doccheck module-folder...
//
// Everything exported needs a doc comment, and so does the package. What looks like a link to a symbol, [Name] or
// [pkg.Type.Method], must be one: pkg.go.dev shows it as plain text, brackets included, if there is no such symbol
// or if the file does not import the package. Every package shows code, in its comment or in an example whose output is checked,
// except what tests are made of (drivertest) and what protoc-gen-go writes.
//
// Programs, internal packages and generated code are left out, and modules whose go.mod begins with "// Not released".
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("doccheck: ")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	found := 0
	for _, dir := range os.Args[1:] {
		complaints, err := module(ctx, dir)
		if err != nil {
			stop()
			log.Fatalf("%s: %v", dir, err) //nolint:gocritic,gosec // exitAfterDefer: stop is called; G706: our own words
		}
		for _, c := range complaints {
			fmt.Println(c)
		}
		found += len(complaints)
	}
	if found > 0 {
		log.Fatalf("%d complaints", found) //nolint:gosec // G706: a number
	}
}

// module returns what is to be said of a module's packages.
func module(ctx context.Context, dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // G304: a folder that was named
	if err != nil || strings.HasPrefix(string(text), "// Not released") {
		return nil, err
	}
	listed, err := list(ctx, dir, "./...")
	if err != nil {
		return nil, err
	}
	var complaints []string
	symbols := index{ctx: ctx, dir: dir, known: make(map[string]map[string]bool)}
	for _, p := range listed {
		if p.Name == "main" || len(p.GoFiles) == 0 || strings.Contains(p.ImportPath+"/", "/internal/") {
			continue
		}
		c, err := p.complaints(&symbols)
		if err != nil {
			return nil, err
		}
		complaints = append(complaints, c...)
	}
	return complaints, nil
}
