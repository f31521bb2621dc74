package httpmw_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/door"
	"github.com/holdfast-go/holdfast/httpmw/internal/doortest"
)

// answers is a RoundTripper without a network, so that its tests run in virtual time.
type answers func(r *http.Request, try int) *httptest.ResponseRecorder

type wire struct {
	answer answers
	tries  int
	bodies []string
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.tries++
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		w.bodies = append(w.bodies, string(body))
	}
	rec := w.answer(r, w.tries)
	if rec == nil {
		return nil, io.ErrUnexpectedEOF
	}
	return rec.Result(), nil
}

// refusedBy is the answer of the door to an error of core.
func refusedBy(kind door.Kind, err error) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	httpmw.ProblemFor(&door.Fault{Kind: kind, Err: err}).ServeHTTP(w, nil)
	return w
}

func passed() *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	_, _ = w.WriteString("done")
	return w
}

func TestTransportRetriesWhatWasNotStartedWithTheSameBody(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]func() *httptest.ResponseRecorder{
		"held":        func() *httptest.ResponseRecorder { return refusedBy(door.Held, core.ErrHeld) },
		"423":         func() *httptest.ResponseRecorder { return refusedBy(door.HeldLocked, core.ErrHeld) },
		"unavailable": func() *httptest.ResponseRecorder { return refusedBy(door.Unavailable, core.ErrUnavailable) },
		"interrupted": func() *httptest.ResponseRecorder { return refusedBy(door.Ended, core.ErrUnavailable) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wire{answer: func(_ *http.Request, try int) *httptest.ResponseRecorder {
					if try < 3 {
						return refusal()
					}
					return passed()
				}}
				began := time.Now()
				res := send(t, &http.Client{Transport: &httpmw.Transport{Base: w}}, strings.NewReader("body"))
				if res != "200 done" || strings.Join(w.bodies, " ") != "body body body" {
					t.Errorf("%s, bodies %q", res, w.bodies)
				}
				if took := time.Since(began); name != "interrupted" && (took < 2*time.Second || took > 3*time.Second) {
					t.Errorf("two pauses took %s", took)
				}
			})
		})
	}
}

func TestTransportNeverRepeatsWhatMayHaveBeenDone(t *testing.T) {
	t.Parallel()
	inside := func(err error) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		httpmw.ProblemFor(err).ServeHTTP(w, nil)
		return w
	}
	foreign := func(status int, contentType, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
		_, _ = w.WriteString(body)
		return w
	}
	const problem = "application/problem+json"
	for name, answer := range map[string]func() *httptest.ResponseRecorder{
		"lost":               func() *httptest.ResponseRecorder { return refusedBy(door.Lost, core.ErrLost) },
		"done":               func() *httptest.ResponseRecorder { return refusedBy(door.Duplicate, core.ErrDuplicate) },
		"bad key":            func() *httptest.ResponseRecorder { return refusedBy(door.BadKey, core.ErrInvalid) },
		"held inside":        func() *httptest.ResponseRecorder { return inside(core.ErrHeld) },
		"unavailable inside": func() *httptest.ResponseRecorder { return inside(core.ErrUnavailable) },
		"another 503":        func() *httptest.ResponseRecorder { return foreign(503, "text/plain", "busy") },
		"another problem":    func() *httptest.ResponseRecorder { return foreign(409, problem, `{"type":"about:blank","status":409}`) },
		"another status": func() *httptest.ResponseRecorder {
			return foreign(500, problem, `{"type":"`+httpmw.TypeHeld+`","status":409}`)
		},
		"a cut problem":       func() *httptest.ResponseRecorder { return foreign(409, problem, `{"type":"`+httpmw.TypeHeld) },
		"a broken connection": func() *httptest.ResponseRecorder { return nil },
		"a success that is ours": func() *httptest.ResponseRecorder {
			return foreign(200, problem, `{"type":"`+httpmw.TypeHeld+`","status":200}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wire{answer: func(*http.Request, int) *httptest.ResponseRecorder { return answer() }}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop.test/", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			res, err := (&httpmw.Transport{Base: w}).RoundTrip(r)
			if w.tries != 1 {
				t.Errorf("sent %d times", w.tries)
			}
			if want := answer(); want == nil {
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Error(err)
				}
			} else {
				defer res.Body.Close()
				if body, err := io.ReadAll(res.Body); err != nil || string(body) != want.Body.String() {
					t.Errorf("the caller reads %q, %v", body, err)
				}
			}
		})
	}
}

func TestTransportKeepsToContextBudgetAndBody(t *testing.T) {
	t.Parallel()
	held := func(*http.Request, int) *httptest.ResponseRecorder { return refusedBy(door.Held, core.ErrHeld) }
	later := func(*http.Request, int) *httptest.ResponseRecorder {
		return refusedBy(door.Held, &core.HeldError{Name: "x", RetryAfter: time.Hour, Exact: true})
	}
	for name, row := range map[string]struct {
		answer  answers
		timeout time.Duration
		budget  time.Duration
		body    io.Reader
		tries   int // at most
		took    time.Duration
	}{
		"the budget":               {held, time.Hour, 10 * time.Second, nil, 11, 10 * time.Second},
		"no budget":                {held, time.Hour, -1, nil, 1, 0},
		"the context":              {held, 5 * time.Second, 0, nil, 5, 5 * time.Second},
		"a time that is too late":  {later, time.Hour, 0, nil, 1, 0},
		"a body that is read once": {held, time.Hour, 0, io.MultiReader(strings.NewReader("body")), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), row.timeout)
				defer cancel()
				w := &wire{answer: row.answer}
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop.test/", row.body)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				res, err := (&httpmw.Transport{Base: w, Budget: row.budget}).RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if p := httpmw.ParseProblem(res); !errors.Is(p, core.ErrHeld) || w.tries > row.tries || time.Since(began) > row.took {
					t.Errorf("%v after %d tries and %s", p, w.tries, time.Since(began))
				}
			})
		})
	}
	t.Run("a context that is cancelled", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(500*time.Millisecond, cancel)
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop.test/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (&httpmw.Transport{Base: &wire{answer: held}}).RoundTrip(r); !errors.Is(err, context.Canceled) { //nolint:bodyclose // none
				t.Error(err)
			}
		})
	})
}

func TestTransportCarriesTheFenceOfItsContext(t *testing.T) {
	t.Parallel()
	locks := doortest.MemoryLocker(t)
	var got string
	w := &wire{answer: func(r *http.Request, _ int) *httptest.ResponseRecorder {
		got = r.Header.Get(httpmw.FenceHeader)
		return passed()
	}}
	request := func(ctx context.Context, tr *httpmw.Transport, header string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://shop.test/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			r.Header.Set(httpmw.FenceHeader, header)
		}
		before := r.Header.Clone()
		res, err := tr.RoundTrip(r)
		if err == nil {
			_ = res.Body.Close()
		}
		if len(before) != len(r.Header) {
			t.Error("the request was changed")
		}
		return err
	}
	plain := &httpmw.Transport{Base: w}
	outer := &httpmw.Transport{Base: w, FenceOf: func(*http.Request) string { return "outer" }}
	if err := request(t.Context(), plain, ""); err != nil || got != "" {
		t.Errorf("without a lock: %q, %v", got, err)
	}
	if err := request(t.Context(), outer, ""); !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("without its lock: %v, want fence.ErrInvalid", err)
	}
	err := locks.Do(t.Context(), "outer", func(ctx context.Context) error {
		of, _ := core.FenceFor(ctx, "outer")
		return locks.Do(ctx, "inner", func(ctx context.Context) error {
			in, _ := core.FenceFor(ctx, "inner")
			for _, row := range []struct {
				tr           *httpmw.Transport
				header, want string
			}{{plain, "", number(in)}, {outer, "", number(of)}, {plain, "7", "7"}} {
				if err := request(ctx, row.tr, row.header); err != nil || got != row.want {
					t.Errorf("%q, %v, want %q", got, err, row.want)
				}
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// Against a real server, whose name comes free while the client waits.
func TestTransportGetsThroughToARealServer(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks, other := doortest.NewLocker(t, &doortest.Backend{Store: store}), doortest.NewLocker(t, &doortest.Backend{Store: store})
	x, err := other.TryAcquire(t.Context(), "order:42")
	if err != nil {
		t.Fatal(err)
	}
	var tries atomic.Int32
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}", httpmw.Lock(locks, "order:{id}")(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) == 2 {
			_ = x.Release(r.Context())
		}
		mux.ServeHTTP(w, r)
	}))
	defer srv.Close()
	client := &http.Client{Transport: &httpmw.Transport{Base: srv.Client().Transport}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/orders/42", strings.NewReader(strings.Repeat("x", 1<<20)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || len(body) != 1<<20 || tries.Load() != 2 {
		t.Errorf("%d, %d bytes after %d tries: %v", res.StatusCode, len(body), tries.Load(), err)
	}
}

// What another service has not started says nothing of the handler that called it.
func TestAProblemOfAnotherServiceIsNoProofOfOurs(t *testing.T) {
	t.Parallel()
	res := refusedBy(door.Held, core.ErrHeld).Result()
	defer res.Body.Close()
	p := httpmw.ParseProblem(res)
	if p == nil || p.Started || p.RetryAfter != time.Second {
		t.Fatalf("%+v", p)
	}
	if own := httpmw.ProblemFor(p); !own.Started || own.RetryAfter != 0 || own.Type != httpmw.TypeHeld {
		t.Errorf("%+v", own)
	}
}

func number(f uint64) string { return strconv.FormatUint(f, 10) }

// send posts, and returns status and body.
func send(t *testing.T, c *http.Client, body io.Reader) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop.test/", body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(res.StatusCode) + " " + string(text)
}

func TestClientsReadEveryProblemOfTheDoors(t *testing.T) {
	t.Parallel()
	for kind := door.Held; kind <= door.Deadlock; kind++ {
		w := refusedBy(kind, errors.New("secret"))
		res := w.Result()
		defer res.Body.Close()
		p, sent := httpmw.ParseProblem(res), httpmw.ProblemFor(&door.Fault{Kind: kind})
		if p == nil || p.Type != sent.Type || p.Status != sent.Status || p.Detail != sent.Detail || p.Started != sent.Started || core.KindOf(p) == 0 {
			t.Errorf("%s: %+v", sent.Type, p)
		}
	}
	res := passed().Result()
	defer res.Body.Close()
	if p := httpmw.ParseProblem(res); p != nil || errors.Is(p, core.ErrHeld) { // as the documentation has it
		t.Errorf("%+v", p)
	}
}

func TestAnAnswerFromInsideSaysWhatWasWrongThere(t *testing.T) {
	t.Parallel()
	lost := httpmw.ProblemFor(core.ErrLost)
	for _, err := range []error{core.ErrHeld, core.ErrDuplicate, core.ErrInvalid, core.ErrUnavailable, core.ErrDeadlock} {
		if p := httpmw.ProblemFor(err); !p.Started || p.Detail == "" || p.Detail == lost.Detail || strings.Contains(p.Detail, "not started") {
			t.Errorf("%v: %+v", err, p)
		}
	}
}
