package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is the command of that name.
func (p *program) version(_ context.Context, _ *place, flags *flag.FlagSet, args []string) (int, error) {
	if err := p.arguments(flags, args, 0); err != nil {
		return misused, err
	}
	version, revision := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
	}
	_, err := fmt.Fprintf(p.out, "holdfast %s%s %s %s/%s\n", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return done, err
}
