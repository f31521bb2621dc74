//go:build linux

package weather

import (
	"strings"
	"testing"
)

func TestWithoutScriptsTheLedgerKnowsWhoseCommandItIs(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdefghijkl"
	command := func(at int64, client string, args ...string) Command {
		return Command{At: ms(at), Client: client, Args: args}
	}
	key := Prefix + "a"
	set := command(0, "w1.1", "set", key, token+magic, "px", "1000")
	cases := []struct {
		name, end string
		breach    string
		then      []Command
	}{
		{"its owner frees it", endFreed, "", []Command{command(100, "w1.1", "del", key)}},
		{"somebody else frees it", endBreach, "deletes", []Command{command(100, "w2.1", "del", key)}},
		{"an operator deletes it", endOperator, "", []Command{command(100, admin, "del", key)}},
		{"its owner renews it", endRun, "", []Command{command(500, "w1.1", "pexpire", key, "1000"), command(1400, admin, "ping")}},
		{"nobody renews it", endExpired, "", []Command{command(1400, admin, "ping")}},
		{"somebody else renews it", endRun, "renews", []Command{command(500, "w2.1", "pexpire", key, "1000"), command(1400, admin, "ping")}},
		{"another token overwrites it", endBreach, "overwrites", []Command{command(500, "w1.1", "set", key, strings.ToUpper(token)+magic, "px", "1000")}},
		{"it is asked for again", endRun, "", []Command{command(500, "w1.1", "set", key, token+magic, "px", "1000")}},
		{"another process has its token", endRun, "token of w1.1", []Command{command(500, "w2.1", "set", key, token+magic, "px", "1000")}},
	}
	for _, c := range cases {
		l := readLedger(append([]Command{set}, c.then...))
		r := l.Reigns[0]
		if r.Worker != "w1.1" || r.End != c.end {
			t.Errorf("%s: the reign of %s ended %s; want %s", c.name, r.Worker, r.End, c.end)
		}
		if found := strings.Join(l.Breaches, "; "); !strings.Contains(found, c.breach) || (found == "") != (c.breach == "") {
			t.Errorf("%s: %q; want %q", c.name, found, c.breach)
		}
	}
}
