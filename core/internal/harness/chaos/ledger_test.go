//go:build linux

package chaos

import (
	"strings"
	"testing"
)

func TestTheLedgerKnowsWhoseCommandItIs(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdefghijkl"
	command := func(at int64, client string, args ...string) Command {
		return Command{At: ms(at), Since: ms(at), Client: client, Args: args}
	}
	key := prefix + "a"
	set := command(0, "w1.1", "set", key, token+magic, "px", "1000")
	cases := []struct {
		name, end string
		breach    string
		then      []Command
	}{
		{"its owner frees it", endFreed, "", []Command{command(100, "w1.1", "del", key)}},
		{"somebody else frees it", endBreach, "deletes", []Command{command(100, "w2.1", "del", key)}},
		{"an operator deletes it", endOperator, "", []Command{command(100, operator, "del", key)}},
		{"its owner renews it", endRun, "", []Command{command(500, "w1.1", "pexpire", key, "1000"), command(1400, operator, "ping")}},
		{"nobody renews it", endExpired, "", []Command{command(1400, operator, "ping")}},
		{"somebody else renews it", endRun, "renews", []Command{command(500, "w2.1", "pexpire", key, "1000"), command(1400, operator, "ping")}},
		{"another token overwrites it", endBreach, "overwrites", []Command{command(500, "w1.1", "set", key, strings.ToUpper(token)+magic, "px", "1000")}},
		{"it is asked for again", endRun, "", []Command{command(500, "w1.1", "set", key, token+magic, "px", "1000")}},
		{"another process has its token", endRun, "token of w1.1", []Command{command(500, "w2.1", "set", key, token+magic, "px", "1000")}},
	}
	for _, c := range cases {
		l := readLedger(append([]Command{set}, c.then...))
		r := l.Grants[0]
		if r.Worker != "w1.1" || r.End != c.end {
			t.Errorf("%s: the reign of %s ended %s; want %s", c.name, r.Worker, r.End, c.end)
		}
		if found := strings.Join(l.Breaches, "; "); !strings.Contains(found, c.breach) || (found == "") != (c.breach == "") {
			t.Errorf("%s: %q; want %q", c.name, found, c.breach)
		}
	}
}

func TestATTLCountsSinceItsScriptBegan(t *testing.T) {
	t.Parallel()
	l := readLedger([]Command{
		{At: ms(5), Since: 0, Client: "w1.1", Script: 1, Args: []string{"set", prefix + "a", "0123456789abcdefghijkl" + magic, "px", "1000"}}, // the server stood still
		{At: ms(1001), Since: ms(1001), Client: "w2.1", Args: []string{"set", prefix + "a", "ABCDEFGHIJKLMNOPQRSTUV" + magic, "px", "1000"}},
	})
	if len(l.Breaches) > 0 {
		t.Errorf("%q", l.Breaches)
	}
}
