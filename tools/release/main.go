// Command release makes a release of all modules of this repository, or tries whether one can be made:
//
//	go run ./release -check              makes one in a temporary clone, and installs everything from it
//	go run ./release -version v0.2.0     does the same, and then takes the commits and tags over into the repository
//
// Nothing is pushed. A release is two commits. The first is what the tags name: its changelog has the version, the
// go.mod files require that version of each other, and no replace directives are left. The second brings these back.
//
// A module is released unless the first line of its go.mod says "// Not released". Modules are found, not listed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	version := flag.String("version", "", "the `version` to make, such as v0.2.0")
	check := flag.Bool("check", false, "only try, with the version that would be next")
	repository := flag.String("repository", "..", "the `folder` of the repository")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *repository, *version, *check); err != nil {
		stop()
		log.Fatal(err) //nolint:gocritic // exitAfterDefer: stop is called
	}
}

var semver = regexp.MustCompile(`^v[01]\.\d+\.\d+$`)

func run(ctx context.Context, repository, version string, check bool) error {
	repository, err := filepath.Abs(repository)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "holdfast-release-")
	if err != nil {
		return err
	}
	defer func() { _ = remove(work) }()
	s := &stage{work: work, dir: filepath.Join(work, "holdfast"), proxy: filepath.Join(work, "proxy"), date: time.Now().UTC().Format(time.DateOnly)}
	if check {
		if version, err = next(ctx, repository); err != nil {
			return err
		}
	}
	if !semver.MatchString(version) {
		return errors.New("the version is v0.x.y or v1.x.y; from v2 on, module paths would have to end in /v2")
	}
	s.version = version
	if err := s.clone(ctx, repository, check); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	if err := s.try(ctx); err != nil {
		return err
	}
	if check {
		log.Printf("%s can be released: %d modules", version, len(s.released))
		return nil
	}
	return s.takeOver(ctx, repository)
}

// next is the version after the last one: that of a check.
func next(ctx context.Context, repository string) (string, error) {
	tags, err := output(ctx, repository, nil, "git", "tag", "--list", "v*", "--sort=-version:refname")
	if err != nil || tags == "" {
		return "v0.1.0", err
	}
	var major, minor, patch int
	if _, err := fmt.Sscanf(tags, "v%d.%d.%d", &major, &minor, &patch); err != nil {
		return "", fmt.Errorf("tag %.20q: %w", tags, err)
	}
	return fmt.Sprintf("v%d.%d.0", major, minor+1), nil
}
