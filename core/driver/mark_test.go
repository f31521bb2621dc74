package driver_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/holdfast-go/holdfast/core/driver"
)

// errClient is what a client returns.
var errClient = &fs.PathError{Op: "dial", Path: "server", Err: errors.New("refused")}

// An unknown outcome hides what is certain, and nothing else.
func TestAMarkedErrorMatchesItsSentinelAndKeepsTheClientsError(t *testing.T) {
	t.Parallel()
	certain := errors.Join(driver.NotSent(driver.Unavailable(errClient)), driver.ErrNotOwner, driver.Refused(errClient))
	sentinels := []error{driver.ErrNotSent, driver.ErrCannotAnswer, driver.ErrNotOwner, driver.ErrRefused}
	for what, row := range map[string]struct {
		err     error
		matches string // which of the sentinels
		nobody  bool   // can answer
		text    string
	}{
		"NotSent":        {driver.NotSent(errClient), "[true false false false]", false, errClient.Error()},
		"Unavailable":    {driver.Unavailable(errClient), "[false true false false]", true, errClient.Error()},
		"Refused":        {driver.Refused(errClient), "[false false false true]", false, errClient.Error()},
		"Because":        {driver.Because(errClient, "why"), "[false false false false]", false, errClient.Error()},
		"both":           {driver.NotSent(driver.Unavailable(errClient)), "[true true false false]", true, errClient.Error()},
		"all":            {certain, "[true true true true]", false, certain.Error()},
		"UnknownOutcome": {driver.UnknownOutcome(fmt.Errorf("no quorum: %w", certain)), "[false true false false]", true, "no quorum: " + certain.Error()},
	} {
		for _, err := range []error{row.err, fmt.Errorf("around: %w", row.err)} {
			var matches []bool
			for _, sentinel := range sentinels {
				matches = append(matches, errors.Is(err, sentinel))
			}
			if fmt.Sprint(matches) != row.matches || driver.Explain(err).Nobody != row.nobody {
				t.Errorf("%s: of %v it matches %v, and nobody can answer: %t", what, sentinels, matches, driver.Explain(err).Nobody)
			}
			if _, ok := errors.AsType[*fs.PathError](err); !ok || !errors.Is(err, errClient) {
				t.Errorf("%s: the client's error is lost", what)
			}
		}
		if row.err.Error() != row.text {
			t.Errorf("%s: the text is %q, not %q", what, row.err, row.text)
		}
	}
	for _, none := range []error{
		driver.NotSent(nil), driver.Unavailable(nil), driver.UnknownOutcome(nil), driver.Refused(nil), driver.Because(nil, "why"),
	} {
		if none != nil {
			t.Errorf("of no error: %v", none)
		}
	}
}

func TestAReasonIsFoundThroughMarks(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("around: %w", driver.NotSent(driver.Refused(driver.Because(errClient, "why"))))
	for err, want := range map[error]string{err: "why", driver.UnknownOutcome(err): "why", errClient: ""} {
		if got := driver.Reason(err); got != want {
			t.Errorf("of %v %q, not %q", err, got, want)
		}
	}
}

func ExampleNotSent() {
	acquire := func(ctx context.Context) error {
		if err := driver.NotSent(ctx.Err()); err != nil {
			return err
		}
		return nil // and here it would send the request
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := acquire(ctx)
	fmt.Println(err)
	fmt.Println(errors.Is(err, driver.ErrNotSent), errors.Is(err, context.Canceled))
	// Output:
	// context canceled
	// true true
}
