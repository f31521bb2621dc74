package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnErrorHasOneMeaning(t *testing.T) {
	t.Parallel()
	held, done, cause := &Held{Label: "them"}, &Duplicate{Label: "us"}, errors.New("said the server")
	for _, row := range []struct {
		err                   error
		want                  Meaning
		open, answered, again bool
	}{
		{nil, Meaning{Kind: Done}, false, true, false},
		{held, Meaning{Kind: HeldBy, Held: held}, false, true, false},
		{fmt.Errorf("wrapped: %w", held), Meaning{Kind: HeldBy, Held: held}, false, true, false},
		{done, Meaning{Kind: Marked}, false, true, false},
		{errors.Join(ErrUnmarked, cause), Meaning{Kind: Unmarked}, false, true, false},
		{fmt.Errorf("%w: %w", ErrNotOwner, cause), Meaning{Kind: NotOwner}, false, true, false},
		{NotSent(cause), Meaning{Kind: NotDone}, false, false, true},
		{NotSent(Unavailable(cause)), Meaning{Kind: NotDone, Nobody: true}, false, false, true},
		{NotSent(Refused(cause)), Meaning{Kind: NotDone, Refused: true}, false, false, false},
		{Refused(cause), Meaning{Refused: true}, true, false, false},
		{UnknownOutcome(NotSent(io.EOF)), Meaning{Nobody: true}, true, false, true},
		{context.DeadlineExceeded, Meaning{Nobody: true}, true, false, true},
		{context.Canceled, Meaning{}, true, false, true},
		{io.EOF, Meaning{Nobody: true}, true, false, true},
		{cause, Meaning{}, true, false, true},
	} {
		got := Explain(row.err)
		if got != row.want || got.Open() != row.open || got.Answered() != row.answered || got.Again() != row.again {
			t.Errorf("%v: %+v, open %t, answered %t, again %t", row.err, got, got.Open(), got.Answered(), got.Again())
		}
	}
}

func TestPollTellsOfEachRefusalAndCountsAGrantFromItsOwnTry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			heard int
			tried []time.Time
		)
		c := Claim{TTL: 30 * time.Second, Heard: func(*Held) { heard++ }}
		g, err := Poll(t.Context(), c, func(context.Context, Claim) (Grant, error) {
			tried = append(tried, time.Now())
			if time.Since(tried[0]) < 10*time.Second {
				return Grant{}, &Held{}
			}
			return Grant{Fence: 7}, nil
		})
		n := len(tried)
		if err != nil || g.Fence != 7 || !g.Asked.Equal(tried[n-1]) || heard != n-1 || n < 10 || n > 20 {
			t.Errorf("%+v, %v after %d of which %d were heard", g, err, n, heard)
		}
	})
}

func TestPollBoundsEachTryAndReturnsItsSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := Poll(t.Context(), Claim{TTL: 30 * time.Second}, func(ctx context.Context, _ Claim) (Grant, error) {
			<-ctx.Done()
			return Grant{}, ctx.Err()
		})
		if !Explain(err).Open() || time.Since(began) != 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestAwaitLooksWhenItIsToldAndOtherwiseEveryRecheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := make(chan struct{}, 1)
		began, looks := time.Now(), []time.Duration(nil)
		_, err := Await(t.Context(), Claim{TTL: 30 * time.Second}, func(context.Context) (Grant, <-chan struct{}, error) {
			looks = append(looks, time.Since(began))
			if len(looks) == 3 {
				return Grant{}, nil, nil
			}
			time.AfterFunc(time.Duration(len(looks))*600*time.Millisecond, func() { told <- struct{}{} })
			return Grant{}, told, &Held{}
		})
		if want := "[0s 600ms 1.6s]"; err != nil || fmt.Sprint(looks) != want {
			t.Errorf("%v, %v", err, looks)
		}
	})
}

func TestAwaitKnowsThatAnEarlierLookStandsInTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			fails error
			first Meaning
			then  Meaning
		}{
			{NotSent(io.EOF), Meaning{Kind: NotDone, Nobody: true}, Meaning{Nobody: true}},
			{NotSent(Refused(io.EOF)), Meaning{Kind: NotDone, Nobody: true, Refused: true}, Meaning{Nobody: true, Refused: true}},
		} {
			for before, want := range []Meaning{c.first, c.then} {
				_, err := Await(t.Context(), Claim{TTL: time.Second}, func(context.Context) (Grant, <-chan struct{}, error) {
					if before--; before >= 0 {
						return Grant{}, nil, &Held{}
					}
					return Grant{}, nil, c.fails
				})
				if got := Explain(err); got != want {
					t.Errorf("%v after a refusal or not: %+v", c.fails, got)
				}
			}
		}
	})
}

func TestAClaimHasFewFieldsAndShowsNoToken(t *testing.T) {
	t.Parallel()
	if n := reflect.TypeFor[Claim]().NumField(); n != 12 {
		t.Errorf("%d fields", n)
	}
	c := Claim{Name: "a", Token: "secret", TTL: time.Second}
	text, _ := c.MarshalText()
	for _, shown := range []string{fmt.Sprintf("%v %+v %#v %s %d", c, c, c, c, c), c.LogValue().String(), string(text)} {
		if want := `claim("a", ttl 1s)`; shown[:len(want)] != want || len(shown) > 5*len(want)+4 {
			t.Errorf("shows %q", shown)
		}
	}
}
