package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryConditionAndCallGetsASwitch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code := `package p

func (x *T) f(a, b int) {
	if !(a < b) && ok() {
		defer g(a == b)
	}
}
`
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	var changes []*change
	got, err := instrument(dir, "p.go", &changes)
	if err != nil {
		t.Fatal(err)
	}
	want := `package p; import "` + switches + `"

func (x *T) f(a, b int) {
	if mutant.If(!(mutant.If(mutant.Less(3, a , b), 0, 2)) && mutant.If(ok(), 4, 0), 0, 1) {
		if mutant.Do(5) { defer g(mutant.If(a == b, 6, 7)) }
	}
}
`
	if string(got) != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	var texts []string
	for _, c := range changes {
		texts = append(texts, strings.TrimPrefix(c.key(), "..T.f\t"))
	}
	if got := strings.Join(texts, "; "); got != "!(a < b) && ok() is false; a < b is false; a < b with <=; ok() is true; "+
		"without defer g(a == b); a == b is true; a == b is false" {
		t.Error(got)
	}
}
