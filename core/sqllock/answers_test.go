package sqllock_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/sqllock"
)

// onFake is a Store on a PostgreSQL that answers as the test says.
func onFake(t *testing.T, answer fake, opts ...sqllock.Option) (*sqllock.Store, *sql.DB) {
	t.Helper()
	return fakeOf(t, sqllock.Postgres, "PostgreSQL 15.18", answer, opts...)
}

func fakeOf(t *testing.T, d sqllock.Dialect, version string, answer fake, opts ...sqllock.Option) (*sqllock.Store, *sql.DB) {
	t.Helper()
	db := sql.OpenDB(fake(func(ctx context.Context, text string) ([][]sqldriver.Value, error) {
		if strings.Contains(text, "version()") {
			return aboutItself(text, version, true), nil
		}
		return answer(ctx, text)
	}))
	t.Cleanup(func() { _ = db.Close() })
	return sqllock.New(db, d, opts...), db
}

// A release that finds a page of rows out of use must not wait for a commit for each.
func TestAPageOfRowsOutOfUseGoesInOneCommit(t *testing.T) {
	t.Parallel()
	var deletes atomic.Int32
	s, _ := onFake(t, func(_ context.Context, text string) (page [][]sqldriver.Value, err error) {
		switch {
		case strings.HasPrefix(text, "DELETE"):
			deletes.Add(1)
		case strings.Contains(text, "LIMIT"):
			for i := range 32 {
				page = append(page, row(fmt.Sprintf("idle-%02d", i))...)
			}
			return page, nil
		}
		return row(""), nil
	})
	for range 8 {
		ok(t, s.Release(t.Context(), driver.Claim{Name: "name", Token: "token", TTL: time.Minute}))
	}
	if n := deletes.Load(); n != 1 {
		t.Errorf("%d statements that delete", n)
	}
}

func ofMany(text string) bool { return strings.Contains(text, "json_to_recordset") }

const inFlight = 4 // statements of a kind, before claims share one

// sharing is onFake, where so many calls hang that the next claim shares a statement.
func sharing(t *testing.T, hangs func(s *sqllock.Store, c driver.Claim), answer fake) *sqllock.Store {
	t.Helper()
	var hanging atomic.Int32
	s, _ := onFake(t, func(ctx context.Context, text string) ([][]sqldriver.Value, error) {
		if !ofMany(text) && hanging.Add(1) <= inFlight {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return answer(ctx, text)
	})
	for i := range inFlight {
		name := fmt.Sprint("hangs-", i)
		go hangs(s, driver.Claim{Name: name, Token: name, TTL: time.Minute})
	}
	eventually(t, "they hang", func() bool { return hanging.Load() == inFlight })
	return s
}

func TestAGrantThatWasRolledBackIsNone(t *testing.T) {
	t.Parallel()
	var shared atomic.Int32
	hangs := func(s *sqllock.Store, c driver.Claim) { _, _ = s.Acquire(t.Context(), c) }
	s := sharing(t, hangs, func(_ context.Context, text string) ([][]sqldriver.Value, error) {
		switch {
		case ofMany(text) && shared.Add(1) == 1:
			return row(int64(0), int64(7)), stateError("40001") // at the commit
		case strings.HasPrefix(text, "SELECT"):
			return row(int64(1), "name", "another", "who", int64(1), int64(1_000_000), int64(1), "", false), nil
		}
		return nil, nil
	})
	_, err := s.Acquire(t.Context(), driver.Claim{Name: "name", Token: "token", TTL: time.Minute})
	backendtest.IsHeld(t, err)
}

func TestARenewalThatWasRolledBackIsNone(t *testing.T) {
	t.Parallel()
	tries := 0
	s, _ := onFake(t, func(_ context.Context, text string) ([][]sqldriver.Value, error) {
		if !ofMany(text) {
			return nil, nil
		}
		if tries++; tries == 1 {
			return [][]sqldriver.Value{{"a", "token-a"}, {"b", "token-b"}}, stateError("40001")
		}
		return row("b", "token-b"), nil // somebody else has locked the other row, or owns it
	})
	errs := s.Renew(t.Context(), []driver.Claim{
		{Name: "a", Token: "token-a", TTL: time.Minute}, {Name: "b", Token: "token-b", TTL: time.Minute},
	})
	if !errors.Is(errs[0], driver.ErrNotOwner) || errs[1] != nil {
		t.Errorf("%v", errs)
	}
}

// numberError is an error of go-sql-driver/mysql.
type numberError struct{ Number uint16 }

func (e *numberError) Error() string { return fmt.Sprint("the server says ", e.Number) }

// MariaDB rolls a statement back if a row has changed since its snapshot.
func TestAStatementThatMariaDBRollsBackIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, number := range []uint16{1020, 1213} {
		tries := 0
		s, _ := fakeOf(t, sqllock.MySQL, "11.8.3-MariaDB", func(_ context.Context, text string) ([][]sqldriver.Value, error) {
			if strings.HasPrefix(text, "UPDATE") {
				if tries++; tries == 1 {
					return nil, &numberError{number}
				}
			}
			return row(""), nil
		})
		ok(t, s.Release(t.Context(), driver.Claim{Name: "name", Token: "token", TTL: time.Minute}))
		if tries != 2 {
			t.Errorf("%d: sent %d times", number, tries)
		}
	}
}

// A server that ends connections can have committed before, while it waited for a standby; so can one whose connection to
// a pooler breaks, or that fails.
func TestAReleaseThatMayHaveBeenCommittedIsNoRefusal(t *testing.T) {
	t.Parallel()
	hangs := func(s *sqllock.Store, c driver.Claim) { _ = s.Release(t.Context(), c) }
	for _, state := range []stateError{"57P01", "08P01", "58030", "XX000", "40003"} {
		s := sharing(t, hangs, func(_ context.Context, text string) ([][]sqldriver.Value, error) {
			if ofMany(text) {
				return nil, state
			}
			return nil, nil
		})
		err := s.Release(t.Context(), driver.Claim{Name: "name", Token: "token", TTL: time.Minute})
		if err == nil || errors.Is(err, driver.ErrNotOwner) || errors.Is(err, driver.ErrNotSent) {
			t.Errorf("%s: %v", state, err)
		}
	}
}

func TestWhatAServerSaysDecidesWhoIsToDoWhat(t *testing.T) {
	t.Parallel()
	for state, c := range map[stateError]struct {
		words           string // tell what to do about what was refused
		refused, nobody bool   // nothing was done; and nobody who asks there is answered
	}{
		"57P01": {nobody: true}, "57P02": {nobody: true}, "57P03": {nobody: true}, "08P01": {nobody: true}, "08006": {nobody: true}, // it starts or stops
		"57014": {}, "XX000": {},
		"25006": {"primary", true, true},
		"42P01": {"sqllock.Schema", true, false}, "42703": {"sqllock.Schema", true, false},
		"42501": {"SELECT, INSERT, UPDATE and DELETE", true, false}, "53100": {"disk", true, false},
		"26000": {"default_query_exec_mode", true, false}, "42P05": {"default_query_exec_mode", true, false}, // behind a pooler
	} {
		s, _ := onFake(t, func(context.Context, string) ([][]sqldriver.Value, error) { return nil, state })
		if c.refused {
			wantNotSent(t, s)
		}
		err := s.Release(t.Context(), driver.Claim{Name: "name", Token: "token", TTL: time.Minute})
		if driver.Explain(err).Nobody != c.nobody || errors.Is(err, driver.ErrNotSent) != c.refused || err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", state, err)
		}
	}
}

func TestAFullQueueOfNotificationsCostsNoRelease(t *testing.T) {
	t.Parallel()
	var quiet atomic.Int32
	s, _ := onFake(t, func(_ context.Context, text string) ([][]sqldriver.Value, error) {
		switch {
		case strings.Contains(text, "pg_notify("):
			return nil, stateError("54000")
		case strings.Contains(text, "SET token"):
			quiet.Add(1)
			return row(""), nil
		}
		return nil, nil
	})
	ok(t, s.Release(t.Context(), driver.Claim{Name: "name", Token: "token", TTL: time.Minute}))
	if n := quiet.Load(); n != 1 {
		t.Errorf("%d releases", n)
	}
}

// pgx calls a connection bad that broke after it had sent a simple query, and a pool sends that again.
func TestAnAcquireThatWasSentIsNotSentAgainNorCalledUnsent(t *testing.T) {
	t.Parallel()
	sent := 0
	s, _ := onFake(t, func(context.Context, string) ([][]sqldriver.Value, error) {
		sent++
		return nil, sqldriver.ErrBadConn
	})
	_, err := s.Acquire(t.Context(), driver.Claim{Name: "name", Token: "token", TTL: time.Minute})
	if err == nil || errors.Is(err, driver.ErrNotSent) || sent != 1 {
		t.Errorf("sent %d times: %v", sent, err)
	}
}

func TestAWaitWhoseStatementWasNotAnsweredSaysSo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s, _ := onFake(t, func(sent context.Context, text string) ([][]sqldriver.Value, error) {
		if strings.HasPrefix(text, "SELECT") {
			return nil, nil
		}
		cancel()
		<-sent.Done()
		return nil, context.DeadlineExceeded // as drivers return it
	})
	_, err := s.Wait(ctx, driver.Claim{Name: "name", Token: "token", TTL: time.Minute})
	if driver.Explain(err).Kind != driver.Unknown || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestAFullPoolIsTheReason(t *testing.T) {
	t.Parallel()
	for what, limit := range map[string]int{"alone": 1, "shared": driver.Readers} {
		s, db := onFake(t, func(context.Context, string) ([][]sqldriver.Value, error) { return nil, nil })
		c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute, Limit: limit}
		_ = s.Release(t.Context(), c) // it has asked what the server is
		db.SetMaxOpenConns(1)
		conn, err := db.Conn(t.Context())
		ok(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err = s.Release(ctx, c)
		if !errors.Is(err, driver.ErrNotSent) || !strings.Contains(driver.Reason(err), "SetMaxOpenConns") {
			t.Errorf("%s: %v, because %q", what, err, driver.Reason(err))
		}
		cancel()
		_ = conn.Close()
	}
}

// Whoever frees a name tells the first of its queue. If that one is just leaving, it tells the next.
func TestWhoLeavesTheQueueOfANameThatHasComeFreeTellsTheNext(t *testing.T) {
	t.Parallel()
	var told atomic.Int32
	life := time.Now().Add(time.Hour).UnixMicro()
	queue := fmt.Sprintf(`{"q":[{"t":"token","c":1,"d":%[1]d,"w":"us"},{"t":"next","c":2,"d":%[1]d,"w":"them"}]}`, life)
	s, _ := onFake(t, func(_ context.Context, text string) ([][]sqldriver.Value, error) {
		switch {
		case strings.HasPrefix(text, "SELECT pg_catalog.pg_notify"):
			told.Add(1)
		case strings.HasPrefix(text, "SELECT"): // as it was
			return row(life-1_000_000, "name", "holder", "", int64(7), life, int64(7), queue, false), nil
		case strings.Contains(text, "SET head"): // as it is
			return row("off free"), nil
		}
		return nil, nil
	})
	if err := s.Release(t.Context(), driver.Claim{Name: "name", Token: "token", TTL: time.Minute}); !errors.Is(err, driver.ErrNotOwner) {
		t.Error(err)
	}
	if n := told.Load(); n != 1 {
		t.Errorf("told %d times", n)
	}
}
