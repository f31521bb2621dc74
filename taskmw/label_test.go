package taskmw

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

var oddTexts = []string{
	"", ":", "a", "a:", ":a", "a:b", "%", "%3A", "%253A", "\x00", "\n", "\x7f", "\u0085", "\xff", "\xfe", "\xff\xfe",
	"\ufffd", "é", "日本語", "a b", "a+b", "a b%", "a+b%", "a%2Bb", "a%3Ab", "a:b%", "{}", strings.Repeat("a", 125), strings.Repeat("a", 126), strings.Repeat("a", 127),
	strings.Repeat("a", 126) + "b", strings.Repeat(":", 42), strings.Repeat("\xff", 42), strings.Repeat("é", 63),
	strings.Repeat("日", 100), strings.Repeat("\n", 1000), strings.Repeat("x", 1<<12), "%sha256-" + strings.Repeat("0", 64),
	part(strings.Repeat("a", 126), ""),
}

func TestOddTypesAndIDsMakeAcceptableDistinctLabels(t *testing.T) {
	t.Parallel()
	l := locktest.Memory(t)
	seen := make(map[string][2]string)
	for _, taskType := range oddTexts {
		for _, id := range oddTexts {
			s := label(taskType, id)
			if other, ok := seen[s]; ok {
				t.Errorf("(%.20q, %.20q) and (%.20q, %.20q) share a label", taskType, id, other[0], other[1])
			}
			seen[s] = [2]string{taskType, id}
			if _, err := l.With(core.WithLabel(s), core.WithDedupScope(part(taskType, ""))); err != nil {
				t.Errorf("(%.20q, %.20q): %v", taskType, id, err)
			}
			if i := strings.LastIndex(s, ":"); s[i+1:] != part(id, ":") {
				t.Errorf("(%.20q, %.20q): what follows the last colon of %q is not the ID", taskType, id, s)
			}
		}
	}
}
