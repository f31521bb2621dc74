package doortest

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// hostileSource is one way by which a value gets into a request.
type hostileSource struct {
	request func(value string) string      // as the bytes of the wire
	sees    func(*http.Request) string     // what the handler gets; nil: what was sent
	refused func(value string) (by answer) // with what; without a status it passes
}

// What becomes of values that name no lock.
var (
	malformed = answer{status: http.StatusBadRequest, body: "400 Bad Request"} // by net/http
	tooLong   = answer{status: http.StatusRequestHeaderFieldsTooLarge}         // the same
	byDoor    = answer{status: rowBadKey.status, body: rowBadKey.body}
	byLimit   = answer{status: rowTooLarge.status, body: rowTooLarge.body}
)

func hostileSources() map[string]hostileSource {
	large := func(v string) bool { return len(v) >= 1<<20 }
	unlessLarge := func(by answer) func(string) answer { return unless(by, large) }
	lines := func(v string) bool { return strings.ContainsAny(v, "\x00\x1b") || strings.Contains(v, "1\n") }
	return map[string]hostileSource{
		"{id|text}":       {func(v string) string { return request("/orders/"+everyByte(v), "") }, nil, unlessLarge(tooLong)},
		"{query:id|text}": {func(v string) string { return request("/plain?id="+url.QueryEscape(v), "") }, nil, unlessLarge(answer{})},
		"{header:X-Id|text}": {
			func(v string) string { return request("/plain", "", "X-Id: "+v) },
			func(r *http.Request) string { return r.Header.Get("X-Id") },
			unless(malformed, lines),
		},
		"{body:id}": {
			func(v string) string { return request("/plain", `{"id":`+asJSONString(v)+`}`, asJSON) }, nil,
			func(v string) answer {
				if large(v) {
					return byLimit
				}
				return unless(byDoor, func(v string) bool { return !utf8.ValidString(v) })(v)
			},
		},
	}
}

func unless(by answer, it func(value string) bool) func(string) answer {
	return func(v string) answer {
		if it(v) {
			return by
		}
		return answer{}
	}
}

// testHostile sends hostile values as raw requests. Those that get a lock get one of their own
// name, which every other door would give them too, and nobody logs anything.
func testHostile(t *testing.T, door Door) {
	for source, by := range hostileSources() {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			var log logBuffer
			seen := make(chan string, 1)
			logger := slog.New(slog.NewTextHandler(&log, nil))
			b := start(t, door, Setup{
				Locker: NewLocker(t, &Backend{Store: memlock.New()}, core.WithLogger(logger)), Logger: logger,
				Key: strings.Replace(hostile.Template, "{v}", source, 1),
				Handler: func(w http.ResponseWriter, r *http.Request) {
					if by.sees != nil {
						seen <- by.sees(r)
					}
					leaseName(w, r)
				},
			})
			var names hostile.Names
			for what, value := range hostile.Values() {
				before := b.ran.Load()
				got := b.raw(by.request(value))
				if want := by.refused(value); want.status != 0 {
					b.refusedAs(what, got, want)
					b.handled(before)
					continue
				}
				if b.ran.Load() == before {
					if value == "/" && got.status == http.StatusNotFound {
						continue // ServeMux has no route for it
					}
					t.Errorf("%s: answered %d %s", what, got.status, got.body)
					continue
				}
				if by.sees != nil {
					value = <-seen
				}
				names.Check(t, value, got.body)
			}
			byDoorOrRouter(b, by)
			if s := log.String(); s != "" {
				t.Errorf("logged: %s", s)
			}
		})
	}
}

// refusedAs fails the test unless the answer is the one that it should be. One to a request that
// the server has not read to its end may be lost.
func (b *bench) refusedAs(what string, got, want answer) {
	b.t.Helper()
	if want.status == tooLong.status && (got.status == want.status || got.status == 0) {
		return
	}
	if got.status != want.status || !strings.HasPrefix(got.body, want.body) {
		b.t.Errorf("%s: answered %d %s", what, got.status, got.body)
	}
}

// byDoorOrRouter sends an empty value. A router may have no route for it.
func byDoorOrRouter(b *bench, by hostileSource) {
	b.t.Helper()
	before := b.ran.Load()
	if got := b.raw(by.request("")); got.status != http.StatusNotFound {
		b.expect(got, rowBadKey)
	}
	b.handled(before)
}

// request is a request's bytes: nothing in them is looked at by a client.
func request(target, body string, headers ...string) string {
	lines := append([]string{"POST " + target + " HTTP/1.1", "Host: shop.test", "Connection: close",
		"Content-Length: " + strconv.Itoa(len(body))}, headers...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + body
}

// raw sends a request's bytes. An answer that does not come has no status.
func (b *bench) raw(request string) answer {
	b.t.Helper()
	conn, err := (&net.Dialer{Timeout: time.Minute}).DialContext(b.t.Context(), "tcp", b.srv.Listener.Addr().String())
	if err != nil {
		b.t.Error(err)
		return answer{}
	}
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, request) }() // the server may answer before it has read all
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return answer{}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Error(err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

const hexDigits = "0123456789ABCDEF"

// everyByte leaves nothing for a client or a router to tidy up.
func everyByte(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
	}
	return b.String()
}

// asJSONString leaves bytes that are not UTF-8 as they are.
func asJSONString(s string) string {
	if !utf8.ValidString(s) {
		return `"` + s + `"`
	}
	text, _ := json.Marshal(s) // of a string: never fails
	return string(text)
}
