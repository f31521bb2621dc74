// Package httptour takes a little shop for a walk: it is what the examples of HTTP doors have in
// common. What they are about is in examples/echo and examples/nethttp.
package httptour

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// step is requests that are sent at the same time. They are sent again until one of the answers
// has the status and the text that the step is about.
type step struct {
	title    string
	requests []string // method, path and, perhaps, a JSON body; # is the order
	status   int
	says     string
}

var steps = []step{
	{"Two payments of one order at once. One runs, the other is turned away:", []string{"POST /orders/#/pay", "POST /orders/#/pay"}, 409, ""},
	{"The same order is paid and cancelled. This route refuses in the shop's own words:", []string{"POST /orders/#/pay", "DELETE /orders/#"}, 409, "not now"},
	{"It is shipped.", []string{"POST /orders/#/ship"}, 200, ""},
	{"And again: what is done is done, for a day.", []string{"POST /orders/#/ship"}, 409, ""},
	{"Two counts of one article. The rule says to wait:", []string{`PUT /stock {"sku":"A7","count":1}`, `PUT /stock {"sku":"A7","count":2}`}, 200, ""},
	{"A count of nothing.", []string{`PUT /stock {"count":3}`}, 400, ""},
}

// Run serves shop at addr and takes it for a walk. Then it says what else to try, and serves
// until ctx ends; with once it does not.
func Run(ctx context.Context, out io.Writer, shop http.Handler, addr string, once bool) error {
	lis, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: shop, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(lis) }()
	url := "http://" + lis.Addr().String()

	err = walk(ctx, out, url)
	if err == nil && !once {
		try(out, url)
		select {
		case <-ctx.Done():
		case err = <-ended:
			return err
		}
	}
	// First the server: its handlers return and their locks are released. Then, in the caller,
	// the Locker.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if stop := srv.Shutdown(last); err == nil {
		err = stop
	}
	<-ended
	return err
}

func walk(ctx context.Context, out io.Writer, url string) error {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	order := strconv.Itoa(rand.IntN(1_000_000)) //nolint:gosec // G404: any will do
	for _, s := range steps {
		answers, err := s.take(ctx, client, url, order)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(out, "\n%s\n", s.title)
		for _, a := range answers {
			_, _ = fmt.Fprintf(out, "  %-34s %s", a.request, a.status)
			if a.retry != "" {
				_, _ = fmt.Fprintf(out, ", Retry-After: %s", a.retry)
			}
			_, _ = fmt.Fprintf(out, "\n    %s\n", a.body)
		}
	}
	return nil
}

// try says what to do by hand.
func try(out io.Writer, url string) {
	_, _ = fmt.Fprintf(out, `
It goes on serving until Ctrl-C. Try:

  curl -i -X POST %[1]s/orders/42/pay & curl -i -X POST %[1]s/orders/42/pay; wait
  curl -i -X POST %[1]s/orders/42/ship
  curl -i -X PUT %[1]s/stock --json '{"sku":"A7","count":1}'
`, url)
}

type answer struct {
	request, status, retry, body string
	code                         int
}

func (s step) take(ctx context.Context, client *http.Client, url, order string) ([]answer, error) {
	var answers []answer
	for range 10 { // two requests of which the first was over before the second came, show nothing
		var err error
		if answers, err = s.once(ctx, client, url, order); err != nil {
			return nil, err
		}
		slices.SortStableFunc(answers, func(a, b answer) int { return cmp.Compare(a.code, b.code) })
		if slices.ContainsFunc(answers, func(a answer) bool { return a.code == s.status && strings.Contains(a.body, s.says) }) {
			return answers, nil
		}
		if slices.ContainsFunc(answers, func(a answer) bool { return a.code >= http.StatusInternalServerError }) {
			break
		}
	}
	return nil, fmt.Errorf("%s answered %s %s, want %d", s.requests[0], answers[0].status, answers[0].body, s.status)
}

func (s step) once(ctx context.Context, client *http.Client, url, order string) ([]answer, error) {
	type result struct {
		answer answer
		err    error
	}
	results := make(chan result, len(s.requests))
	for _, request := range s.requests {
		go func() {
			a, err := send(ctx, client, url, strings.Replace(request, "#", order, 1))
			results <- result{a, err}
		}()
	}
	var answers []answer
	var failed error
	for range s.requests {
		r := <-results
		answers, failed = append(answers, r.answer), cmp.Or(failed, r.err)
	}
	return answers, failed
}

func send(ctx context.Context, client *http.Client, url, request string) (answer, error) {
	line, body, _ := strings.Cut(request, " {")
	method, path, _ := strings.Cut(line, " ")
	var content io.Reader = http.NoBody
	if body != "" {
		content = strings.NewReader("{" + body)
	}
	r, err := http.NewRequestWithContext(ctx, method, url+path, content)
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{request, res.Status, res.Header.Get("Retry-After"), strings.TrimSpace(string(text)), res.StatusCode}, nil
}
