package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	begin = "<!-- evidence: begin -->\n"
	end   = "<!-- evidence: end -->"
)

// split cuts a document around its table.
func split(text string) (before, between, after string, err error) {
	before, rest, ok := strings.Cut(text, begin)
	between, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", "", "", errors.New("there is no place for the table, between " + strings.TrimSpace(begin) + " and " + end)
	}
	return before, between, after, nil
}

func replace(text string, shown table) (string, error) {
	before, _, after, err := split(text)
	if err != nil {
		return "", err
	}
	return before + begin + shown.String() + end + after, nil
}

// compare fails if the document's table says anything else than what was shown, but for the
// versions of servers.
func compare(text string, shown table, doc string) error {
	_, between, _, err := split(text)
	if err != nil {
		return fmt.Errorf("%s: %w", doc, err)
	}
	written, run := compared(between), compared(shown.String())
	if slices.Equal(written, run) {
		return nil
	}
	var b strings.Builder
	for _, row := range written {
		if !slices.Contains(run, row) {
			fmt.Fprintf(&b, "- %s\n", row)
		}
	}
	for _, row := range run {
		if !slices.Contains(written, row) {
			fmt.Fprintf(&b, "+ %s\n", row)
		}
	}
	return fmt.Errorf("the table in %s is not what this run has shown (-: document, +: run):\n%s"+
		"If the run is right, mend the document: make evidence", doc, b.String())
}

// compared is a table's rows but for the servers' versions.
func compared(table string) []string {
	rows := strings.Split(strings.TrimSpace(table), "\n")
	return slices.DeleteFunc(rows, func(row string) bool { return strings.HasPrefix(row, "| "+serverRow+" |") })
}
