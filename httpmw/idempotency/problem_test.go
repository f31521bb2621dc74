package idempotency_test

import (
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/idempotency"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// every returns an answer of each type.
func every(t *testing.T) []*httpmw.Problem {
	t.Helper()
	all := []*httpmw.Problem{httpmw.ProblemOf(adapter.Outcome{Reason: adapter.BadKey, Err: key.ErrTooLarge})}
	for reason := adapter.Held; reason <= adapter.Lost; reason++ {
		all = append(all, httpmw.ProblemOf(adapter.Outcome{Reason: reason, Err: errors.New("secret")}))
	}
	p := newPayments(t, echoed, func(c *idempotency.Config) {
		c.ErrorHandler = func(_ http.ResponseWriter, _ *http.Request, p *httpmw.Problem) { all = append(all, p) }
		c.Scope = func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }
	})
	p.ask("no spaces\x01", "10", "X-User", "ann")
	p.ask("k1", "10")
	p.ask("k1", "10", "X-User", "ann")
	p.ask("k1", "11", "X-User", "ann")
	return all
}

func TestDocsOfProblemsSayWhatIsAnswered(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operate/problem-types.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, known := make(map[string][]string), make(map[string]bool)
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `") && len(cells) == 5 {
			rows[strings.Trim(cells[0], "| `")] = cells
		}
	}
	for _, p := range every(t) {
		id, ours := strings.CutPrefix(p.Type, "https://holdfast-go.github.io/problems/")
		known[id] = true
		row, after := rows[id], map[bool]string{true: "yes", false: "no"}[p.RetryAfter > 0]
		if !ours || row == nil || !strings.Contains(row[1], strconv.Itoa(p.Status)) || row[2] != p.Title || row[3] != after {
			t.Errorf("%s: %d %q, Retry-After %s; the page says %q", p.Type, p.Status, p.Title, p.RetryAfter, row)
		}
		if !strings.Contains(string(page), "\n## "+id+"\n") {
			t.Errorf("no section %q", id)
		}
	}
	if len(rows) != len(known) {
		t.Errorf("%d rows for %d types", len(rows), len(known))
	}
}
