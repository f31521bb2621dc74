package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
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

func TestAnAnswerFromInsideSaysWhatWasWrongThere(t *testing.T) {
	t.Parallel()
	lost := httpmw.ProblemFor(core.ErrLost)
	for _, err := range []error{core.ErrHeld, core.ErrDuplicate, core.ErrInvalid, core.ErrUnavailable} {
		if p := httpmw.ProblemFor(err); !p.Started || p.Detail == "" || p.Detail == lost.Detail || strings.Contains(p.Detail, "not started") {
			t.Errorf("%v: %+v", err, p)
		}
	}
}
