package main

import (
	"strings"
	"testing"
)

func TestTheChangelogGetsASectionForTheVersion(t *testing.T) {
	t.Parallel()
	got, err := dated("# Changelog\n\n## [Unreleased]\n\n### Added\n\n- One.\n\n## [0.1.0] - 2026-01-01\n", "v0.2.0", "2026-02-03")
	want := "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n\n### Added\n\n- One.\n\n## [0.1.0] - 2026-01-01\n"
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
	for _, nothing := range []string{"# Changelog\n", "## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- One.\n"} {
		if got, err := dated(nothing, "v0.2.0", "2026-02-03"); err == nil {
			t.Errorf("made %q of %q", got, nothing)
		}
	}
}

func TestModulesComeAfterThoseThatTheyNeed(t *testing.T) {
	t.Parallel()
	sorted, err := inOrder([]module{
		{path: root + "/a", needs: []string{root + "/b", root}},
		{path: root + "/b", needs: []string{root}},
		{path: root},
	})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, m := range sorted {
		paths = append(paths, m.folder())
	}
	if got := strings.Join(paths, " "); got != ". b a" {
		t.Error(got)
	}
	if _, err := inOrder([]module{{path: root, needs: []string{root + "/a"}}, {path: root + "/a", needs: []string{root}}}); err == nil {
		t.Error("a circle is no order")
	}
}

func TestATagNamesTheModulesFolder(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{root: "v0.1.0", root + "/core/etcdlock": "core/etcdlock/v0.1.0"} {
		if got := (module{path: path}).tag("v0.1.0"); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestEveryModuleOfTheRepositoryIsFound(t *testing.T) {
	t.Parallel()
	all, err := modules(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	private := make(map[string]bool)
	for _, m := range all {
		private[m.folder()] = m.private
	}
	for folder, want := range map[string]bool{".": false, "core/etcdlock": false, "examples": true, "tools": true, "core/internal/harness": true} {
		if got, found := private[folder]; !found || got != want {
			t.Errorf("%s: found %v, private %v", folder, found, got)
		}
	}
}
