//go:build linux

// Command figures prints the figures of runs of bad weather, which -weather.figures has written
// line by line, as tables. docs/verification.md has a part of them.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-go/holdfast/core/internal/harness/weather"
)

func main() {
	if err := tables(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func tables(in io.Reader, out io.Writer) error {
	var runs []weather.Figures
	for lines := json.NewDecoder(in); ; {
		var f weather.Figures
		switch err := lines.Decode(&f); {
		case errors.Is(err, io.EOF):
			_, err = io.WriteString(out, weather.Tables(runs))
			return err
		case err != nil:
			return err
		}
		runs = append(runs, f)
	}
}
