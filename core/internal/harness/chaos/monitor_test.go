package chaos

import (
	"slices"
	"testing"
)

func TestALineOfMonitorIsRead(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`+1795449706.893094 [0 127.0.0.1:39662] "eval" "-- \"x\" \\ y" "1" "k" "v\x1f"`,
		`+1795449706.893094 [0 127.0.0.1:39662] "EVAL" "-- "x" \ y" "1" "k" "v\x1f"`, // Valkey 8.1
	} {
		m := &monitor{names: make(map[string]string)}
		m.note(line)
		if m.failed != nil || len(m.commands) != 1 || !slices.Equal(m.commands[0].Args[2:], []string{"1", "k", "v\x1f"}) {
			t.Errorf("%s: %v, %v", line, m.failed, m.commands)
		}
	}
	m := &monitor{names: make(map[string]string)}
	if m.note(`+1795449706.893094 [0 127.0.0.1:39662] "set" "a`); m.failed == nil {
		t.Error("a line that cannot be read was")
	}
	m = &monitor{names: make(map[string]string)}
	if m.note(`+1795449706.893094 [0 127.0.0.1:39662] "set" "" "a\" \"\x1f" ""`); !slices.Equal(m.commands[0].Args, []string{"set", "", "a\" \"\x1f", ""}) {
		t.Errorf("%v, %v", m.commands, m.failed)
	}
	m = &monitor{names: make(map[string]string)}
	m.note(`+1795449706.893094 [0 127.0.0.1:39662] "eval" "x" "1" "k"`)
	m.note(`+1795449706.893090 [0 lua] "get" "k"`)
	if get := m.commands[1]; get.At < get.Since {
		t.Errorf("%d ns before its script", get.Since-get.At)
	}
}
