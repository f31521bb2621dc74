// Package mutant is the switch that tools/mutants puts into the code: of all mutants in a program, the environment
// variable MUTANT chooses one by its number. If MUTANT_REACHED names a file, the numbers of those that would make
// a difference are written there instead.
package mutant

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

var (
	chosen, _ = strconv.Atoi(os.Getenv("MUTANT"))
	reached   = open(os.Getenv("MUTANT_REACHED"))
	known     [1 << 14]atomic.Bool
)

func open(path string) *os.File {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // G304: named by tools/mutants
	if err != nil {
		panic(err)
	}
	return f
}

func on(n int) bool {
	if reached != nil && !known[n].Swap(true) {
		if _, err := fmt.Fprintln(reached, n); err != nil {
			panic(err)
		}
	}
	return chosen == n
}

// If is cond, or true as mutant yes, or false as mutant no. There is no mutant 0.
func If(cond bool, yes, no int) bool {
	switch {
	case !cond && yes != 0 && on(yes):
		return true
	case cond && no != 0 && on(no):
		return false
	}
	return cond
}

// Do is whether a statement is executed.
func Do(n int) bool { return !on(n) }

// Less is a < b, or a <= b as mutant n.
func Less[T cmp.Ordered](n int, a, b T) bool { return a < b || a == b && on(n) }

// LessEqual is a <= b, or a < b as mutant n.
func LessEqual[T cmp.Ordered](n int, a, b T) bool { return a < b || a == b && !on(n) }

// Greater is a > b, or a >= b as mutant n.
func Greater[T cmp.Ordered](n int, a, b T) bool { return a > b || a == b && on(n) }

// GreaterEqual is a >= b, or a > b as mutant n.
func GreaterEqual[T cmp.Ordered](n int, a, b T) bool { return a > b || a == b && !on(n) }
