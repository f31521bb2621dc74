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

func TestAMarkedErrorMatchesItsSentinelAndKeepsTheClientsError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err     error
		matches []error
		not     []error
	}{
		"NotSent":     {driver.NotSent(errClient), []error{driver.ErrNotSent}, []error{driver.ErrCannotAnswer, driver.ErrNotOwner}},
		"Unavailable": {driver.Unavailable(errClient), []error{driver.ErrCannotAnswer}, []error{driver.ErrNotSent, driver.ErrNotOwner}},
		"Refused":     {driver.Refused(errClient), []error{driver.ErrRefused}, []error{driver.ErrNotSent, driver.ErrCannotAnswer}},
		"Because":     {driver.Because(errClient, "why"), nil, []error{driver.ErrNotSent, driver.ErrCannotAnswer, driver.ErrRefused}},
		"both":        {driver.NotSent(driver.Unavailable(errClient)), []error{driver.ErrNotSent, driver.ErrCannotAnswer}, nil},
	} {
		for _, target := range append(test.matches, errClient) {
			if !errors.Is(test.err, target) {
				t.Errorf("%s: does not match %v", name, target)
			}
		}
		for _, target := range test.not {
			if errors.Is(test.err, target) {
				t.Errorf("%s: matches %v", name, target)
			}
		}
		if test.err.Error() != errClient.Error() {
			t.Errorf("%s: the text is %q", name, test.err)
		}
		if _, ok := errors.AsType[*fs.PathError](test.err); !ok {
			t.Errorf("%s: the client's type is lost", name)
		}
	}
}

func TestOnlyUnavailableSaysThatNobodyCanAnswer(t *testing.T) {
	t.Parallel()
	if driver.Explain(driver.NotSent(errClient)).Nobody {
		t.Error("NotSent says so")
	}
	if !driver.Explain(driver.Unavailable(errClient)).Nobody {
		t.Error("Unavailable does not")
	}
}

func TestAnUnknownOutcomeHidesCertaintiesAndNothingElse(t *testing.T) {
	t.Parallel()
	inner := errors.Join(driver.NotSent(driver.Unavailable(errClient)), driver.ErrNotOwner, driver.Refused(errClient))
	err := driver.UnknownOutcome(fmt.Errorf("no quorum: %w", inner))
	for _, hidden := range []error{driver.ErrNotSent, driver.ErrNotOwner, driver.ErrRefused} {
		if errors.Is(err, hidden) {
			t.Errorf("it matches %v", hidden)
		}
		if errors.Is(fmt.Errorf("around: %w", err), hidden) {
			t.Errorf("it matches %v through an error around it", hidden)
		}
	}
	for _, kept := range []error{driver.ErrCannotAnswer, errClient} {
		if !errors.Is(err, kept) {
			t.Errorf("it does not match %v", kept)
		}
	}
	if _, ok := errors.AsType[*fs.PathError](err); !ok {
		t.Error("the client's type is lost")
	}
	if want := "no quorum: " + inner.Error(); err.Error() != want {
		t.Errorf("the text is %q, not %q", err, want)
	}
}

func TestNoErrorStaysNone(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]func(error) error{
		"NotSent": driver.NotSent, "Unavailable": driver.Unavailable, "UnknownOutcome": driver.UnknownOutcome,
		"Refused": driver.Refused, "Because": func(err error) error { return driver.Because(err, "why") },
	} {
		if err := mark(nil); err != nil {
			t.Errorf("%s(nil) is %v", name, err)
		}
	}
}

func TestAReasonIsFoundThroughMarks(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("around: %w", driver.NotSent(driver.Refused(driver.Because(errClient, "why"))))
	if got := driver.Reason(err); got != "why" {
		t.Errorf("%q", got)
	}
	if got := driver.Reason(driver.UnknownOutcome(err)); got != "why" {
		t.Errorf("of an unknown outcome %q", got)
	}
	if got := driver.Reason(errClient); got != "" {
		t.Errorf("of the client's own error %q", got)
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
