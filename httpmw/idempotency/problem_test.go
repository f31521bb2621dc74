package idempotency_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/idempotency"
	"github.com/holdfast-go/holdfast/internal/locktest"
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
	locktest.OK(t, err)
	known := make(map[string]bool)
	for _, p := range every(t) {
		id, ours := strings.CutPrefix(p.Type, "https://holdfast-go.github.io/problems/")
		known[id] = true
		answer := fmt.Sprintf("\n## %s\n%d %q", id, p.Status, p.Title)
		if p.RetryAfter > 0 {
			answer += ", `Retry-After`"
		}
		if _, after, found := strings.Cut(string(page), answer); !ours || !found || p.RetryAfter == 0 && strings.HasPrefix(after, ", `Retry-After`") {
			t.Errorf("%s, Retry-After %s: the page does not say %q", p.Type, p.RetryAfter, answer)
		}
	}
	if n := strings.Count(string(page), "\n## "); n != len(known) {
		t.Errorf("%d sections for %d types", n, len(known))
	}
}
