package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// stage is a clone of the repository in which a release is made.
type stage struct {
	work, dir     string // a temporary folder, and the clone in it
	version, date string
	all, released []module
	proxy         string // the folder that is served as a module proxy
}

// clone makes the clone. A check takes what is not committed along; a release refuses it.
func (s *stage) clone(ctx context.Context, repository string, check bool) error {
	changed, err := output(ctx, repository, nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if _, err := output(ctx, s.work, nil, "git", "clone", "--quiet", repository, s.dir); err != nil {
		return err
	}
	if changed == "" {
		return nil
	}
	if !check {
		return fmt.Errorf("a release is made of what is committed, and this is not:\n%s", changed)
	}
	sync := "git ls-files -z --cached --others --exclude-standard --deduplicate | xargs -0 -I{} sh -c 'test -e \"{}\" && echo \"{}\"' | tar -c -T - | tar -x -C " + s.dir
	if _, err := output(ctx, repository, nil, "sh", "-c", sync); err != nil {
		return err
	}
	return s.commit(ctx, "What is not committed")
}

// prepare makes the commits and the tags.
func (s *stage) prepare(ctx context.Context) error {
	var err error
	if s.all, err = modules(ctx, s.dir); err != nil {
		return err
	}
	for _, m := range s.all {
		if !m.private {
			s.released = append(s.released, m)
		}
	}
	base, err := s.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if err := s.changelog(); err != nil {
		return err
	}
	if err := s.requireEachOther(ctx); err != nil {
		return err
	}
	if err := s.sums(ctx, base); err != nil {
		return err
	}
	if err := s.commit(ctx, "Release "+s.version); err != nil {
		return err
	}
	if err := s.tag(ctx); err != nil {
		return err
	}
	return s.backToDevelopment(ctx, base)
}

// requireEachOther writes the version into each require line. What is released loses its replace directives.
func (s *stage) requireEachOther(ctx context.Context) error {
	for _, m := range s.all {
		edit := []string{"mod", "edit"}
		for _, need := range m.needs {
			edit = append(edit, "-require", need+"@"+s.version)
			if m.private {
				continue
			}
			edit = append(edit, "-dropreplace", need)
			if !slices.ContainsFunc(s.released, func(other module) bool { return other.path == need }) {
				return fmt.Errorf("%s needs %s, which is not released", m.path, need)
			}
		}
		if len(edit) == 2 {
			continue
		}
		if _, err := s.goTool(ctx, m, nil, edit...); err != nil {
			return err
		}
	}
	return nil
}

// sums completes the go.sum files. That of a module has the hashes of the modules that it needs, so these come first:
// each is tagged for the moment, and served. The hash of a module does not depend on the modules inside its folder.
func (s *stage) sums(ctx context.Context, base string) error {
	for _, m := range s.released {
		if len(m.needs) > 0 {
			if _, err := s.goTool(ctx, m, s.consumerEnv(ctx, "-mod=mod"), "mod", "tidy"); err != nil {
				return err
			}
		}
		if err := s.commit(ctx, "For the moment"); err != nil {
			return err
		}
		if _, err := s.git(ctx, "tag", "--force", m.tag(s.version)); err != nil {
			return err
		}
		if err := s.serve(ctx, m); err != nil {
			return err
		}
	}
	if err := remove(s.proxy); err != nil {
		return err
	}
	_, err := s.git(ctx, "reset", "--quiet", "--soft", base)
	return err
}

// tag makes the tags, and serves what they name.
func (s *stage) tag(ctx context.Context) error {
	for _, m := range s.released {
		name := m.tag(s.version)
		if _, err := s.git(ctx, "tag", "--force", "--annotate", "--message", "Release "+name, name); err != nil {
			return err
		}
		if err := s.serve(ctx, m); err != nil {
			return err
		}
		log.Printf("tagged %s", name)
	}
	for _, m := range s.released {
		if err := s.checkSums(m); err != nil {
			return err
		}
	}
	return nil
}

// checkSums compares the go.sum that was tagged with the hashes of what the tags are.
func (s *stage) checkSums(m module) error {
	for _, need := range m.needs {
		hash, err := os.ReadFile(filepath.Join(s.proxy, "cache", "download", filepath.FromSlash(need), "@v", s.version+".ziphash"))
		if err != nil {
			return err
		}
		sums, err := os.ReadFile(filepath.Join(s.dir, m.folder(), "go.sum"))
		if err != nil {
			return err
		}
		if line := need + " " + s.version + " " + string(hash) + "\n"; !strings.Contains(string(sums), line) {
			return fmt.Errorf("%s/go.sum lacks %s", m.folder(), line)
		}
	}
	return nil
}

// backToDevelopment brings the replace directives back, and keeps the versions.
func (s *stage) backToDevelopment(ctx context.Context, base string) error {
	for _, m := range s.released {
		if len(m.needs) == 0 {
			continue
		}
		files := []string{"checkout", base, "--", filepath.Join(m.folder(), "go.mod"), filepath.Join(m.folder(), "go.sum")}
		if _, err := s.git(ctx, files...); err != nil {
			return err
		}
		for _, need := range m.needs {
			if _, err := s.goTool(ctx, m, nil, "mod", "edit", "-require", need+"@"+s.version); err != nil {
				return err
			}
		}
	}
	return s.commit(ctx, "Back to development after "+s.version)
}

// takeOver brings commits and tags into the repository, and says how to publish them.
func (s *stage) takeOver(ctx context.Context, repository string) error {
	if _, err := output(ctx, repository, nil, "git", "pull", "--quiet", "--ff-only", "--tags", s.dir, "HEAD"); err != nil {
		return err
	}
	push := []string{"git push --atomic origin HEAD"}
	for _, m := range s.released {
		push = append(push, m.tag(s.version))
	}
	log.Printf("made; nothing is published before you say:\n\n\t%s\n", strings.Join(push, " "))
	return nil
}

func (s *stage) git(ctx context.Context, args ...string) (string, error) {
	return output(ctx, s.dir, nil, "git", args...)
}

func (s *stage) commit(ctx context.Context, message string) error {
	if _, err := s.git(ctx, "add", "--all"); err != nil {
		return err
	}
	_, err := s.git(ctx, "commit", "--quiet", "--allow-empty", "--message", message)
	return err
}

// goTool runs the go command in a module's folder.
func (s *stage) goTool(ctx context.Context, m module, env []string, args ...string) (string, error) {
	return output(ctx, filepath.Join(s.dir, m.folder()), env, "go", args...)
}

// changelog gives the section of what is unreleased the version, and begins a new one.
func (s *stage) changelog() error {
	file := filepath.Join(s.dir, "CHANGELOG.md")
	text, err := os.ReadFile(file) //nolint:gosec // G304: ours
	if err != nil {
		return err
	}
	dated, err := dated(string(text), s.version, s.date)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(dated), 0o644) //nolint:gosec // G306: a document
}

const unreleased = "## [Unreleased]\n"

func dated(changelog, version, date string) (string, error) {
	before, after, found := strings.Cut(changelog, unreleased)
	news, _, _ := strings.Cut(after, "\n## ")
	if !found || !strings.Contains(news, "\n- ") {
		return "", fmt.Errorf("CHANGELOG.md has nothing under %q", strings.TrimSpace(unreleased))
	}
	return before + unreleased + "\n## [" + strings.TrimPrefix(version, "v") + "] - " + date + "\n" + after, nil
}
