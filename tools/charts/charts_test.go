package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const docs = "../../docs"

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func onPage(t *testing.T) figures {
	t.Helper()
	f, err := parse(string(read(t, pageFile)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func inFile(t *testing.T) figures {
	t.Helper()
	f, err := decode(read(t, figuresFile))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestThePageAndTheFiguresAgree(t *testing.T) {
	t.Parallel()
	page, file := onPage(t), inFile(t)
	if !reflect.DeepEqual(page, file) {
		t.Errorf("docs/%s does not say what docs/%s says: run make charts", figuresFile, pageFile)
	}
	if len(page.Scenarios) < 10 {
		t.Errorf("%d tables, want 10 or more", len(page.Scenarios))
	}
	one, err := file.table("one-name")
	if err != nil {
		t.Fatal(err)
	}
	if v, err := one.value("Holdfast", "commands per acquisition"); err != nil || v <= 0 || v > 0.05 {
		t.Errorf("%v, %v", v, err)
	}
}

func TestThePicturesAreThoseOfTheFigures(t *testing.T) {
	t.Parallel()
	pictures, err := draw(inFile(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, picture := range pictures {
		if !bytes.Equal(picture, read(t, name)) {
			t.Errorf("docs/%s is out of date: run make charts", name)
		}
	}
}

func TestEveryPictureIsXMLAndLinkedTo(t *testing.T) {
	t.Parallel()
	pictures, err := draw(inFile(t))
	if err != nil {
		t.Fatal(err)
	}
	pages := string(read(t, pageFile)) + string(read(t, "../README.md"))
	for name, picture := range pictures {
		decoder := xml.NewDecoder(bytes.NewReader(picture))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if !strings.Contains(pages, name+")") {
			t.Errorf("nobody links to %s", name)
		}
	}
}

func TestACommandWritesWhatTheTestsRead(t *testing.T) {
	t.Parallel()
	copied := t.TempDir()
	for _, page := range []string{pageFile, growthPage} {
		if err := os.WriteFile(filepath.Join(copied, page), read(t, page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(copied); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{figuresFile, growthFigures, growthPicture} {
		text, err := os.ReadFile(filepath.Join(copied, filepath.FromSlash(name)))
		if err != nil || !bytes.Equal(text, read(t, name)) {
			t.Errorf("%s is not as it is in the repository: run make charts: %v", name, err)
		}
	}
}

func TestAPageThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	const run = "\n## The last run\n\ngo1.26.8, redis-server 7.0.15; medians of 5.\n\n"
	const table = "### Title (`pair`)\n\n| | pairs/s | faults |\n|---|---:|---|\n"
	for name, page := range map[string]string{
		"no section": "# Performance\n",
		"no tables":  run,
		"no figure":  run + table + "| Holdfast | many | none |\n",
		"too few":    run + table + "| Holdfast | 1 |\n",
	} {
		if _, err := parse(page); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	f, err := parse(run + table + "| Holdfast | 12 (11–13) | 2 calls failed |\n")
	if err != nil {
		t.Fatal(err)
	}
	low, high := 11.0, 13.0
	want := []row{{"Holdfast", []figure{{"pairs/s", 12, &low, &high}}, "2 calls failed"}}
	if !reflect.DeepEqual(f.Scenarios[0].Rows, want) {
		t.Errorf("%+v", f.Scenarios[0].Rows)
	}
	if _, err := draw(f); err == nil {
		t.Error("charts were drawn of figures that are not there")
	}
}
