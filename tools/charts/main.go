// Command charts draws the pictures of the documentation, from the tables of docs/performance.md
// and docs/capacity.md:
//
//	make charts
//
// It writes the figures of these tables to docs/figures, and draws the charts from those files.
// After a new run of "make bench-peers" or "make scale": put its tables into the page, and run
// this. The tests fail where page, figures and pictures do not agree.
package main

import (
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("charts: ")
	docs := flag.String("docs", "../../docs", "the `folder` of performance.md")
	flag.Parse()
	if err := run(*docs); err != nil {
		log.Fatal(err)
	}
}

const (
	pageFile    = "performance.md"
	figuresFile = "figures/performance.json"
)

func run(docs string) error {
	page, err := os.ReadFile(filepath.Join(docs, pageFile)) //nolint:gosec // G304: the folder that was asked for
	if err != nil {
		return err
	}
	read, err := parse(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", pageFile, err)
	}
	text, err := read.encode()
	if err != nil {
		return err
	}
	if err := write(docs, figuresFile, text); err != nil {
		return err
	}
	f, err := decode(text)
	if err != nil {
		return err
	}
	pictures, err := draw(f)
	if err != nil {
		return err
	}
	if pictures[growthPicture], err = runGrowth(docs); err != nil {
		return fmt.Errorf("%s: %w", growthPage, err)
	}
	for _, name := range slices.Sorted(maps.Keys(pictures)) {
		if err := write(docs, name, pictures[name]); err != nil {
			return err
		}
	}
	return nil
}

// runGrowth writes the figures of docs/capacity.md, and returns their picture.
func runGrowth(docs string) ([]byte, error) {
	page, err := os.ReadFile(filepath.Join(docs, growthPage)) //nolint:gosec // G304: as above
	if err != nil {
		return nil, err
	}
	g, err := parseGrowth(string(page))
	if err != nil {
		return nil, err
	}
	text, err := g.encode()
	if err != nil {
		return nil, err
	}
	if err := write(docs, growthFigures, text); err != nil {
		return nil, err
	}
	return grow(g)
}

// draw returns the pictures of performance.md, and the one without figures, by their names in docs.
func draw(f figures) (map[string][]byte, error) {
	pictures := map[string][]byte{"architecture.svg": architecture()}
	for name, chart := range charts {
		picture, err := chart(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		pictures[name] = picture
	}
	return pictures, nil
}

func write(docs, name string, text []byte) error {
	path := filepath.Join(docs, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // G301: documents
		return err
	}
	return os.WriteFile(path, text, 0o644) //nolint:gosec // G306: a document
}
