package core

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxDefaultLabel = 96
	maxHost         = 63
)

// thisProcess names this process to those who find a name held: host:pid.
func thisProcess() string {
	host, _ := os.Hostname() // "" if it has none
	return cutText(printable(strings.ReplaceAll(cmp.Or(host, "?"), " ", "?")), maxHost) + ":" + strconv.Itoa(os.Getpid())
}

// labelOf is the default label.
func labelOf(process, operation string) string {
	if operation == "" {
		return process
	}
	return cutText(process+" "+printable(operation), maxDefaultLabel)
}

// printable replaces what a label cannot have.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return '?'
		}
		return r
	}, s)
}

// cutText cuts s to n bytes, between two characters. What is cut ends in "…".
func cutText(s string, n int) string {
	const more = "…"
	if len(s) <= n {
		return s
	}
	end := n - len(more)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + more
}
