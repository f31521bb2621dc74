// Package examples_test compiles what the READMEs show.
package examples_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	_ "github.com/holdfast-go/holdfast/examples/demo/shoppb" // registers shop.v1.Orders
)

func TestTheReadmesSnippetsAreThisCode(t *testing.T) {
	t.Parallel()
	code := flat(read(t, "readme_code_test.go"))
	english := snippets(read(t, "../README.md"))
	for _, snippet := range english {
		if !strings.Contains(code, flat(snippet)) {
			t.Errorf("the README shows what is not in readme_code_test.go:\n%s", snippet)
		}
	}
	if len(english) == 0 {
		t.Error("the README has no Go snippet")
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

func TestWhatTheReadmesLinkToIsThere(t *testing.T) {
	t.Parallel()
	for _, link := range links(read(t, "../README.md")) {
		if strings.Contains(link, "://") {
			continue
		}
		if _, err := os.Stat("../" + link); err != nil {
			t.Error(err)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
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

// links are the targets of [text](target), but for the other language's README.
func links(text string) []string {
	var list []string
	for {
		_, rest, found := strings.Cut(text, "](")
		if !found {
			return list
		}
		target, after, _ := strings.Cut(rest, ")")
		if !strings.HasPrefix(target, "README") {
			list = append(list, target)
		}
		text = after
	}
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
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // whether there is a server at that address is not what the snippet is about
	if err := readme(ctx, echo.New(), asynq.Config{}, asynq.NewServeMux()); err == nil {
		t.Error("the snippet took a lock in an ended context")
	}
}

func TestTheReadmesWrapRuns(t *testing.T) {
	t.Parallel()
	locks, err := core.New(memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	lease, err := locks.Acquire(t.Context(), "order:42")
	if err != nil {
		t.Fatal(err)
	}
	released := time.AfterFunc(20*time.Millisecond, func() { _ = lease.Release(context.WithoutCancel(t.Context())) })
	defer released.Stop()
	if _, err := readmeWrap(locks)(t.Context(), &refundRequest{OrderID: "42"}); err != nil {
		t.Error(err)
	}
	if err := readmeEnd(t.Context(), locks); err != nil {
		t.Error(err)
	}
}
