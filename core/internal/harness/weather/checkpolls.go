//go:build linux

package weather

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkPolls looks for processes that ask for a name more often than its callers are a reason for.
func checkPolls(v *Evidence) (breaches []string) {
	const (
		window = int64(250 * time.Millisecond)
		always = 40 // for those who wait, and for a holder
		served = 6  // for a call that came to something
	)
	if v.Service != One || len(v.Servers) == 0 {
		return nil
	}
	for key, at := range v.Servers[0].asks() {
		worker, name := key[0], key[1]
		calls := v.answers(worker, name)
		for i, from := range at {
			n := len(at[i:])
			if end := slices.IndexFunc(at[i:], func(t int64) bool { return t > from+window }); end >= 0 {
				n = end
			}
			allowed := always
			for _, a := range calls {
				switch {
				case a.At < from-window || a.At > from+2*window:
				case a.Class == "ended":
					allowed++
				default:
					allowed += served
				}
			}
			if n > allowed {
				breaches = append(breaches, fmt.Sprintf("%s: %s asked %d times in %v from %.3f s on; %d would do", name, worker, n,
					time.Duration(window), seconds(from), allowed))
				break
			}
		}
	}
	return breaches
}

// answers are what came of the calls of a process for a name.
func (v *Evidence) answers(worker, name string) (all []Event) {
	for _, c := range v.Calls {
		if c.Answered.Worker == worker && c.Answered.Name == name {
			all = append(all, c.Answered)
		}
	}
	return all
}

// asks is when each process sent a command about each name.
func (l *Ledger) asks() map[[2]string][]int64 {
	all := make(map[[2]string][]int64)
	for _, c := range l.Commands {
		if c.Caller != nil || c.operators() || !strings.HasPrefix(c.Args[0], "eval") {
			continue
		}
		keys, err := strconv.Atoi(c.Args[2])
		if err != nil {
			continue
		}
		for _, key := range c.Args[3 : 3+keys] {
			if name := nameOf(key); name != "" {
				all[[2]string{c.Client, name}] = append(all[[2]string{c.Client, name}], c.At)
			}
		}
	}
	return all
}
