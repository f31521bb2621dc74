package httpmw_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw"
)

func TestProblemForCore(t *testing.T) {
	t.Parallel()
	held := &core.HeldError{Name: "order:42", RetryAfter: 300 * time.Millisecond}
	lost := &core.LostError{Name: "order:42", Reason: core.ReasonExpired}
	for _, test := range []struct {
		err  error
		want string
	}{
		{held, httpmw.TypeHeld},
		{&core.DuplicateError{Name: "order:42"}, httpmw.TypeDuplicate},
		{core.ErrClosed, httpmw.TypeUnavailable},
		{errors.Join(context.Canceled, core.ErrUnavailable), httpmw.TypeInterrupted},
		{errors.Join(context.DeadlineExceeded, core.ErrUnavailable), httpmw.TypeInterrupted},
		{errors.Join(context.Canceled, lost), httpmw.TypeLost},
		{errors.Join(held, lost), httpmw.TypeLost},
	} {
		if p := httpmw.ProblemFor(test.err); p == nil || p.Type != test.want || p.RetryAfter != 0 || !p.Started || !errors.Is(p, test.err) ||
			strings.Contains(p.Error(), "order:42") || strings.Contains(p.Detail, "not started") {
			t.Errorf("%v: %+v, want %s", test.err, p, test.want)
		}
	}
	for _, err := range []error{nil, io.EOF, context.Canceled} {
		if p := httpmw.ProblemFor(err); p != nil {
			t.Errorf("%v: %+v, want nil", err, p)
		}
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
