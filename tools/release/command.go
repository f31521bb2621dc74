package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// output runs a command and returns what it prints. An error has what it said.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // G204: git and go, with what this program says
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "GOWORK=off"), env...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: in %s: %w\n%s%s", name, strings.Join(args, " "), dir, err, out, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// remove deletes a folder with a module cache in it, whose files are read-only.
func remove(dir string) error {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700) //nolint:gosec // G302: a folder
		}
		return err
	})
	return os.RemoveAll(dir)
}
