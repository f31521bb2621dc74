// Package examples_test compiles what the READMEs and the pages show.
package examples_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	_ "github.com/holdfast-go/holdfast/examples/demo/shoppb" // registers shop.v1.Orders
	"github.com/holdfast-go/holdfast/httpmw/echomw"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// pages are the documents whose Go code stands, compiled, in files of this folder.
var pages = map[string][]string{
	"README.md":                       {"readme_code_test.go"},
	"README.zh-CN.md":                 {"readme_code_test.go"},
	"docs/getting-started.md":         {"start/main.go", "readme_code_test.go", "pages_code_test.go"},
	"docs/comparison.md":              {"migration/page_test.go"},
	"docs/guides/answers.md":          {"pages_code_test.go"},
	"docs/guides/http.md":             {"pages_code_test.go", "readme_code_test.go", "recipes/chi/pathvalues_test.go", "../httpmw/ginmw/example_test.go", "../httpmw/fibermw/example_test.go"},
	"docs/guides/idempotency.md":      {"pages_code_test.go"},
	"docs/guides/rpc.md":              {"pages_code_test.go", "../grpcmw/connectmw/example_test.go"},
	"docs/guides/jobs.md":             {"pages_code_test.go", "../core/internal/harness/rivertest/page_test.go", "../taskmw/cronmw/page_test.go", "../taskmw/watermillmw/example_test.go", "../taskmw/temporalmw/page_test.go"},
	"docs/backends/sql.md":            {"../core/sqllock/example_test.go"},
	"docs/backends/etcd.md":           {"../core/etcdlock/example_test.go"},
	"docs/backends/zookeeper.md":      {"../core/zklock/example_test.go"},
	"docs/backends/nats.md":           {"../core/natslock/example_test.go"},
	"docs/backends/memcached.md":      {"../core/memcachedlock/example_test.go"},
	"docs/guides/functions.md":        {"pages_code_test.go", "../core/lockgen/testdata/shop/orders.go"},
	"docs/operate/observing.md":       {"../core/internal/harness/telemetrytest/docs_test.go"},
	"docs/operate/running.md":         {"pages_code_test.go"},
	"docs/operate/troubleshooting.md": {"pages_code_test.go"},
	"docs/operate/command.md":         {"pages_code_test.go"},
	"docs/guides/testing.md":          {"pages_testing_test.go"},
}

func TestTheSnippetsOfThePagesAreCompiledCode(t *testing.T) {
	t.Parallel()
	for page, files := range pages {
		var code strings.Builder
		for _, file := range files {
			code.WriteString(flat(read(t, file)))
		}
		list := snippets(read(t, "../"+page))
		for _, snippet := range list {
			if !strings.Contains(code.String(), flat(snippet)) {
				t.Errorf("%s shows what is not in %s:\n%s", page, strings.Join(files, ", "), snippet)
			}
		}
		if len(list) == 0 {
			t.Errorf("%s has no Go snippet", page)
		}
	}
}

// Code is the same in both languages, comments too: it is one file that both show.
func TestBothReadmesShowTheSameCodeAndLinkToTheSamePages(t *testing.T) {
	t.Parallel()
	english, chinese := read(t, "../README.md"), read(t, "../README.zh-CN.md")
	for what, list := range map[string]func(string) []string{"code": snippets, "links": links, "headings": headings} {
		a, b := list(english), list(chinese)
		if len(a) != len(b) {
			t.Errorf("%s: %d in English, %d in Chinese", what, len(a), len(b))
			continue
		}
		for i := range a {
			if what != "headings" && a[i] != b[i] {
				t.Errorf("%s: %q in English, %q in Chinese", what, a[i], b[i])
			}
		}
	}
}

func TestWhatTheDocumentsLinkToIsThere(t *testing.T) {
	t.Parallel()
	for _, document := range documents(t) {
		for _, link := range links(read(t, document)) {
			if strings.Contains(link, "://") {
				continue
			}
			path, heading, _ := strings.Cut(link, "#")
			target := filepath.Join(filepath.Dir(document), path)
			if path == "" {
				target = document
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", document, err)
				continue
			}
			if heading != "" && !hasHeading(read(t, target), heading) {
				t.Errorf("%s: %s has no heading #%s", document, target, heading)
			}
		}
	}
}

// documents are all pages.
func documents(t *testing.T) []string {
	t.Helper()
	list := []string{"../README.md", "../README.zh-CN.md", "../CONTRIBUTING.md"}
	for _, pattern := range []string{"../docs/*.md", "../docs/*/*.md"} {
		more, err := filepath.Glob(pattern)
		noError(t, err)
		list = append(list, more...)
	}
	return list
}

// hasHeading says whether a document has a heading that GitHub links to by this name.
func hasHeading(text, name string) bool {
	for _, heading := range headings(text) {
		heading = strings.ToLower(strings.TrimSpace(strings.TrimLeft(heading, "#")))
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			default:
				return -1
			}
		}, heading)
		if anchor == name {
			return true
		}
	}
	return false
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	noError(t, err)
	return string(text)
}

// snippets are the blocks of Go code.
func snippets(text string) []string {
	var list []string
	for {
		_, rest, found := strings.Cut(text, "```go\n")
		if !found {
			return list
		}
		snippet, after, _ := strings.Cut(rest, "```")
		list, text = append(list, snippet), after
	}
}

// links are the targets of [text](target) outside code, but for the other language's README.
func links(text string) []string {
	var list []string
	for i, part := range strings.Split(text, "```") {
		if i%2 == 1 { // a block of code
			continue
		}
		for {
			_, rest, found := strings.Cut(part, "](")
			if !found {
				break
			}
			target, after, _ := strings.Cut(rest, ")")
			if !strings.HasPrefix(target, "README") {
				list = append(list, target)
			}
			part = after
		}
	}
	return list
}

func headings(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}

// flat leaves out how far lines are indented, and how comments behind code are aligned.
func flat(code string) string {
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return strings.Join(lines, "\n")
}

func TestTheReadmesSnippetRuns(t *testing.T) {
	t.Parallel()
	if err := readme(echo.New()); err != nil { // it does no I/O
		t.Error(err)
	}
	e := echo.New()
	e.POST("/orders/:id/pay", pay, echomw.Lock(locktest.Memory(t), "order:{id|int}"))
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders/42/pay", http.NoBody))
	if w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

var noError = locktest.OK
