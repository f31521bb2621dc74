package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/httpmw"
)

func TestProblemForCore(t *testing.T) {
	t.Parallel()
	held := &core.HeldError{Name: "order:42", RetryAfter: 300 * time.Millisecond}
	lost := &core.LostError{Name: "order:42", Reason: core.ReasonExpired}
	for _, test := range []struct {
		err   error
		want  string
		after time.Duration
	}{
		{held, httpmw.TypeHeld, 0},
		{fmt.Errorf("pay: %w", held), httpmw.TypeHeld, 0},
		{&core.DuplicateError{Name: "order:42"}, httpmw.TypeDuplicate, 0},
		{core.ErrInvalid, httpmw.TypeInvalidKey, 0},
		{core.ErrUnavailable, httpmw.TypeUnavailable, 0},
		{core.ErrClosed, httpmw.TypeUnavailable, 0},
		{errors.Join(context.Canceled, core.ErrUnavailable), httpmw.TypeInterrupted, 0},
		{errors.Join(context.DeadlineExceeded, core.ErrUnavailable), httpmw.TypeInterrupted, 0},
		{lost, httpmw.TypeLost, 0},
		{errors.Join(context.Canceled, lost), httpmw.TypeLost, 0},
		{errors.Join(held, lost), httpmw.TypeLost, 0},
	} {
		p := httpmw.ProblemFor(test.err)
		if p != nil && !p.Started {
			t.Errorf("%v: not started", test.err)
		}
		if p == nil || p.Type != test.want || p.RetryAfter != test.after || !errors.Is(p, test.err) {
			t.Errorf("%v: %+v, want %s", test.err, p, test.want)
		}
	}
	for _, err := range []error{nil, io.EOF, context.Canceled} {
		if p := httpmw.ProblemFor(err); p != nil {
			t.Errorf("%v: %+v, want nil", err, p)
		}
	}
}

func TestProblemTellsNothingInternal(t *testing.T) {
	t.Parallel()
	p := httpmw.ProblemFor(&core.HeldError{Name: "order:secret", Label: "secret"})
	w := httptest.NewRecorder()
	p.ServeHTTP(w, nil)
	if s := p.Error() + w.Body.String() + fmt.Sprint(w.Header()); strings.Contains(s, "secret") {
		t.Error(s)
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]string{
		0: "", time.Nanosecond: "1", time.Second: "1", time.Second + 1: "2", 90 * time.Second: "90",
	} {
		w := httptest.NewRecorder()
		(&httpmw.Problem{Status: http.StatusConflict, RetryAfter: after}).ServeHTTP(w, nil)
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("%s: %q, want %q", after, got, want)
		}
	}
}

func TestWhatBecameOfARequestIsAnswered(t *testing.T) {
	t.Parallel()
	held := &core.HeldError{Name: "order:42", RetryAfter: 300 * time.Millisecond}
	for _, test := range []struct {
		out   adapter.Outcome
		want  string
		after time.Duration
	}{
		{adapter.Outcome{Reason: adapter.Held, Err: held}, httpmw.TypeHeld, 300 * time.Millisecond},
		{adapter.Outcome{Reason: adapter.Held, Err: core.ErrHeld}, httpmw.TypeHeld, time.Second},
		{adapter.Outcome{Reason: adapter.Unavailable, Err: core.ErrUnavailable}, httpmw.TypeUnavailable, time.Second},
		{adapter.Outcome{Reason: adapter.BadKey, Err: &http.MaxBytesError{Limit: 1}}, httpmw.TypeTooLarge, 0},
		{adapter.Outcome{Reason: adapter.Lost, Err: core.ErrLost, Own: io.EOF}, httpmw.TypeLost, 0},
	} {
		p := httpmw.ProblemOf(test.out)
		if p.Type != test.want || p.RetryAfter != test.after || !errors.Is(p, test.out.Err) || p.Started != test.out.Ran() ||
			test.out.Own != nil && !errors.Is(p, test.out.Own) {
			t.Errorf("%+v: %+v", test.out, p)
		}
	}
	if p := httpmw.ProblemOf(adapter.Outcome{Reason: adapter.Done, Own: core.ErrHeld}); p != nil {
		t.Error(p)
	}
}

// every returns an answer of each type.
func every(t *testing.T) []*httpmw.Problem {
	t.Helper()
	all := []*httpmw.Problem{httpmw.ProblemOf(adapter.Outcome{Reason: adapter.BadKey, Err: key.ErrTooLarge})}
	for reason := adapter.Held; reason <= adapter.Lost; reason++ {
		all = append(all, httpmw.ProblemOf(adapter.Outcome{Reason: reason, Err: errors.New("secret")}))
	}
	p := newPayments(t, echoed, func(c *httpmw.IdempotencyConfig) {
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
	page, err := os.ReadFile("../docs/operate/problem-types.md")
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

func TestAnAnswerFromInsideSaysWhatWasWrongThere(t *testing.T) {
	t.Parallel()
	lost := httpmw.ProblemFor(core.ErrLost)
	for _, err := range []error{core.ErrHeld, core.ErrDuplicate, core.ErrInvalid, core.ErrUnavailable} {
		if p := httpmw.ProblemFor(err); !p.Started || p.Detail == "" || p.Detail == lost.Detail || strings.Contains(p.Detail, "not started") {
			t.Errorf("%v: %+v", err, p)
		}
	}
}
