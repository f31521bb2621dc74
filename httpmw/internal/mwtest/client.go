package mwtest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast/httpmw"
)

// answer is what a client gets to see.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request, "POST /orders/42", with headers "Name: value" and a body. Any
// goroutine may call it.
func (b *bench) do(line, body string, headers ...string) answer {
	b.t.Helper()
	method, path, _ := strings.Cut(line, " ")
	var content io.Reader = http.NoBody
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, content)
	if err != nil {
		b.t.Error(err)
		return answer{}
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Add(name, value)
	}
	return b.send(r)
}

func (b *bench) send(r *http.Request) answer {
	b.t.Helper()
	res, err := b.srv.Client().Do(r)
	if err != nil {
		b.t.Error(err)
		return answer{}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Error(err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

// row is a row of the outcome table, as it goes over the wire.
type row struct {
	status     int
	retryAfter string
	body       string
}

const problems = `{"type":"https://holdfast-go.github.io/problems/`

// The rows. What clients rely on is written out here once more, so that no change of the
// table goes unnoticed.
var (
	rowHeld = row{409, "1", problems + `held","title":"Resource is in use","status":409,` +
		`"detail":"Another request is working on the same resource. This request was not started."}`}
	rowDone = row{409, "", problems + `already-processed","title":"Already processed","status":409,` +
		`"detail":"An earlier request has done this already. This request was not started."}`}
	rowBadKey   = row{400, "", problems + `invalid-key","title":"Resource is not identified","status":400,`} // see blames
	rowTooLarge = row{413, "", problems + `body-too-large","title":"Body is too large","status":413,` +
		`"detail":"The body is larger than what the server looks at to find the resource. This request was not started.",` +
		`"source":"body:id","reason":"too-large"}`}
	rowRoute = row{500, "", problems + `misconfigured-route","title":"Route is misconfigured","status":500,` +
		`"detail":"The server can not tell which resource a request of this route is for. This request was not started."}`}
	rowUnlockable = row{500, "", problems + `misconfigured-route","title":"Route is misconfigured","status":500,` +
		`"detail":"The server can not lock a resource in the way that this route wants. This request was not started."}`}
	rowUnavailable = row{503, "1", problems + `unavailable","title":"Lock service is unavailable","status":503,` +
		`"detail":"The server can not tell now whether the resource is in use. This request was not started."}`}
	rowStopping = row{503, "1", problems + `unavailable","title":"Lock service is unavailable","status":503,` +
		`"detail":"The server is about to stop and takes no new work. This request was not started."}`}
	rowInterrupted = row{503, "", problems + `interrupted","title":"Request was interrupted","status":503,` +
		`"detail":"The request ended before it was known whether the resource is in use. This request was not started."}`}
	rowLost = row{503, "", problems + `lock-lost","title":"Lock was lost","status":503,` +
		`"detail":"The server lost its claim on the resource while it worked on it. What this request has done is not known.","started":true}`}
)

// expect fails the test unless the client was answered with exactly this row.
func (b *bench) expect(got answer, want row) {
	b.t.Helper()
	body := got.body
	if !strings.HasSuffix(want.body, "}") {
		body = body[:min(len(body), len(want.body))] // the rest depends on the source
	}
	switch {
	case got.status != want.status || body != want.body:
		b.t.Errorf("answered %d %s\nwant %d %s", got.status, got.body, want.status, want.body)
	case got.header.Get("Content-Type") != "application/problem+json":
		b.t.Errorf("Content-Type: %q", got.header.Get("Content-Type"))
	case strings.Join(got.header.Values("Retry-After"), "|") != want.retryAfter:
		b.t.Errorf("Retry-After: %q, want %q", got.header.Values("Retry-After"), want.retryAfter)
	case got.header.Get("Cache-Control") != "no-store":
		b.t.Errorf("Cache-Control: %q", got.header.Get("Cache-Control"))
	}
}

// blames fails the test unless the answer says which source is at fault, and why.
func (b *bench) blames(got answer, source, reason string) {
	b.t.Helper()
	var p httpmw.Problem
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		b.t.Fatal(err)
	}
	if p.Source != source || p.Reason != reason || source != "" && reason != "content-type" && !strings.Contains(p.Detail, "{"+source+"}") {
		b.t.Errorf("%s\nblames {%s} as %q, want {%s}, %q", got.body, p.Source, p.Reason, source, reason)
	}
}

// passed fails the test unless the handler's own answer came through.
func (b *bench) passed(got answer, body string) {
	b.t.Helper()
	if got.status != http.StatusOK || got.body != body {
		b.t.Errorf("answered %d %q, want 200 %q", got.status, got.body, body)
	}
}
