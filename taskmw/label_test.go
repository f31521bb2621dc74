package taskmw

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestOddTypesAndIDsMakeAcceptableDistinctLabels(t *testing.T) {
	t.Parallel()
	l := locktest.Memory(t)
	seen := make(map[string][2]string)
	isLarge := func(s string) bool { return len(s) > 5<<10 } // all of whose pairs would take a second
	odd := append(slices.DeleteFunc(slices.Collect(maps.Values(hostile.Values())), isLarge), "", ":", "a:", ":a", "a:b", "a%3Ab", "a%253Ab", "\n", "\u0085", "\xff\xfe",
		strings.Repeat("a", maxPart), strings.Repeat("a", maxPart+1), strings.Repeat(":", 42), part(strings.Repeat("a", maxPart+1), ""))
	for _, taskType := range odd {
		for _, id := range odd {
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
