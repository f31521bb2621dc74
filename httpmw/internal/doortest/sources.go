package doortest

import (
	"net/http"
	"strings"
	"testing"
)

const (
	asForm = "Content-Type: application/x-www-form-urlencoded"
	asJSON = "Content-Type: application/json"
	asPart = "Content-Type: multipart/form-data; boundary=B"
)

// part is a multipart form with these values of "sku", and a file.
func part(values ...string) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteString("--B\r\nContent-Disposition: form-data; name=\"sku\"\r\n\r\n" + v + "\r\n")
	}
	b.WriteString("--B\r\nContent-Disposition: form-data; name=\"sku\"; filename=\"f\"\r\n\r\nfile\r\n--B--\r\n")
	return b.String()
}

func testSources(t *testing.T, door Door) {
	for _, test := range []struct {
		key, line, body string
		headers         []string
		want            string
	}{
		{key: "order:{id}", line: "POST /orders/42", want: "order:42"},
		{key: "order:{id}", line: "POST /orders/%34%32", want: "order:42"},
		{key: "order:{id}", line: "POST /orders/a%2Fb", want: "order:a/b"},
		{key: "order:{id}", line: "POST /orders/1:2", want: "order:1%3A2"},
		{key: "order:{id}", line: "POST /orders/%2534", want: "order:%2534"},
		{key: "order:{id}", line: "POST /orders/%7Bx%7D", want: "order:%7Bx%7D"},
		{key: "order:{id}", line: "POST /orders/gr%C3%B6%C3%9Fe", want: "order:größe"},
		{key: "{id}:{id}", line: "POST /orders/42", want: "42:42"},
		{key: "job:nightly", line: "POST /plain", want: "job:nightly"},
		{key: "{query:sku}", line: "POST /plain?sku=a+b", want: "a%20b"},
		{key: "{query:sku}", line: "POST /plain?sku=7&sku=7", want: "7"},
		{key: "{query:filter[id]}", line: "POST /plain?filter%5Bid%5D=7", want: "7"},
		{key: "{query:sku}", line: "POST /plain?sku=%37%20%38", want: "7%208"},
		{key: "{query:sku}", line: "POST /plain?sku=%2537", want: "%2537"},
		{key: "{query:sku}", line: "POST /plain?sku=7&sku=%37", want: "7"},
		{key: "{query:sku}", line: "POST /plain?sku=7,8", want: "7,8"},
		{key: "{query:sku}", line: "POST /plain?sku=7&x=1&x=2", want: "7"},
		{key: "{query:id}:{id}", line: "POST /orders/42?id=7", want: "7:42"},
		{key: "{header:X-Tenant}", line: "POST /plain", headers: []string{"X-Tenant: a%20b"}, want: "a%2520b"},
		{key: "{header:X-Tenant}", line: "POST /plain", headers: []string{"X-Tenant: a, b"}, want: "a,%20b"},
		{key: "{header:x-tenant}:{id}", line: "POST /orders/42", headers: []string{"X-TENANT: acme"}, want: "acme:42"},
		{key: "{header:X-Tenant}", line: "POST /plain", headers: []string{"X-Tenant: a", "X-Tenant: a"}, want: "a"},
		{key: "{header:Host}", line: "POST /plain", headers: []string{"Host: shop.test"}, want: "shop.test"},
		{key: "{cookie:sid}", line: "POST /plain", headers: []string{"Cookie: other=1; sid=abc; sid=abc"}, want: "abc"},
		{key: "{cookie:sid}", line: "POST /plain", headers: []string{"Cookie: sid=abc", "Cookie: sid=abc"}, want: "abc"},
		{key: "{cookie:sid}", line: "POST /plain", headers: []string{"Cookie: sid=%61%62"}, want: "%2561%2562"},
		{key: "{cookie:sid}", line: "POST /plain", headers: []string{`Cookie: sid="abc"`}, want: "abc"},
		{key: "{form:sku}", line: "POST /plain", body: "sku=7&x=1", headers: []string{asForm}, want: "7"},
		{key: "{form:sku}", line: "POST /plain", body: "sku=%37&sku=7", headers: []string{asForm}, want: "7"},
		{key: "{form:sku}", line: "POST /plain", body: "sku=a+b", headers: []string{asForm}, want: "a%20b"},
		{key: "{form:sku}", line: "POST /plain", body: part("%37"), headers: []string{asPart}, want: "%2537"},
		{key: "{form:sku}", line: "POST /plain?sku=7", body: "sku=7", headers: []string{asForm}, want: "7"},
		{key: "{form:sku}", line: "POST /plain?sku=7", want: "7"},
		{key: "{form:sku}", line: "GET /plain?sku=7", want: "7"},
		{key: "{form:sku}", line: "POST /plain", body: part("7"), headers: []string{asPart}, want: "7"},
		{key: "{form:sku}", line: "POST /plain?sku=7", body: part("7", "7"), headers: []string{asPart}, want: "7"},
		{key: "{body:order.id}", line: "POST /plain", body: `{"order":{"id":42}}`, headers: []string{asJSON}, want: "42"},
		{key: "{body:id}", line: "PUT /plain", body: `{"id":"42"}`, headers: []string{"Content-Type: application/merge-patch+json; charset=utf-8"}, want: "42"},
		{key: "{body:id}:{body:sku}", line: "POST /plain", body: `{"id":42,"sku":"a:b"}`, want: "42:a%3Ab"},
		{key: "{http:method}:{id}", line: "PUT /orders/42", want: "PUT:42"},
	} {
		t.Run(test.key+" "+test.line, func(t *testing.T) {
			t.Parallel()
			b := start(t, door, Setup{Key: test.key})
			b.passed(b.do(test.line, test.body, test.headers...), test.want)
		})
	}
}

func testBadRequests(t *testing.T, door Door) {
	for _, test := range []struct {
		key, line, body string
		headers         []string
		reason          string
	}{
		{key: "{query:sku}", line: "POST /plain", reason: "missing"},
		{key: "{query:sku}", line: "POST /plain?sku=", reason: "missing"},
		{key: "{query:sku}", line: "POST /plain?SKU=7", reason: "missing"},
		{key: "{query:sku}", line: "POST /plain?sku=7&sku=8", reason: "ambiguous"},
		{key: "{query:sku}", line: "POST /plain?sku=7&sku=", reason: "ambiguous"},
		{key: "{query:sku}", line: "POST /plain?sku=%zz", reason: "missing"},
		{key: "{query:sku}", line: "POST /plain?sku=7;x=1", reason: "missing"},
		{key: "{query:sku}", line: "POST /plain?sku=%37&sku=%2537", reason: "ambiguous"},
		{key: "{query:sku}", line: "POST /plain?sku=7&sku=07", reason: "ambiguous"},
		{key: "{header:X-Tenant}", line: "POST /plain", reason: "missing"},
		{key: "{header:X-Tenant}", line: "POST /plain", headers: []string{"X-Tenant: "}, reason: "missing"},
		{key: "{header:X-Tenant}", line: "POST /plain", headers: []string{"X-Tenant: a", "X-Tenant: b"}, reason: "ambiguous"},
		{key: "{header:X-Tenant}", line: "POST /plain", headers: []string{"X-Tenant: a", "X-Tenant: A"}, reason: "ambiguous"},
		{key: "{header:X-Tenant}", line: "POST /plain", headers: []string{"X-Tenant: a", "X-Tenant: "}, reason: "ambiguous"},
		{key: "{cookie:sid}", line: "POST /plain", reason: "missing"},
		{key: "{cookie:sid}", line: "POST /plain", headers: []string{"Cookie: sid="}, reason: "missing"},
		{key: "{cookie:sid}", line: "POST /plain", headers: []string{"Cookie: SID=a"}, reason: "missing"},
		{key: "{cookie:sid}", line: "POST /plain", headers: []string{"Cookie: sid=a; sid=b"}, reason: "ambiguous"},
		{key: "{cookie:sid}", line: "POST /plain", headers: []string{"Cookie: sid=a", "Cookie: sid=b"}, reason: "ambiguous"},
		{key: "{form:sku}", line: "POST /plain", body: "x=7", headers: []string{asForm}, reason: "missing"},
		{key: "{form:sku}", line: "POST /plain", body: "sku=7&sku=8", headers: []string{asForm}, reason: "ambiguous"},
		{key: "{form:sku}", line: "POST /plain?sku=7", body: "sku=8", headers: []string{asForm}, reason: "ambiguous"},
		{key: "{form:sku}", line: "POST /plain", body: "sku=7&x=%zz", headers: []string{asForm}, reason: "invalid"},
		{key: "{form:sku}", line: "POST /plain", body: "sku=7", reason: "missing"},
		{key: "{form:sku}", line: "POST /plain", body: part("7", "8"), headers: []string{asPart}, reason: "ambiguous"},
		{key: "{form:sku}", line: "POST /plain?sku=8", body: part("7"), headers: []string{asPart}, reason: "ambiguous"},
		{key: "{form:sku}", line: "POST /plain", body: part(), headers: []string{asPart}, reason: "missing"},
		{key: "{form:sku}", line: "POST /plain?sku=7", body: part("7")[:52], headers: []string{asPart}, reason: "invalid"},
		{key: "{form:sku}", line: "POST /plain", body: part("7"), headers: []string{"Content-Type: multipart/form-data"}, reason: "invalid"},
		{key: "{body:id}", line: "POST /plain", reason: "missing"},
		{key: "{body:id}", line: "POST /plain", body: `{"ID":42}`, reason: "missing"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42,"ID":43}`, reason: "ambiguous"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42,"id":43}`, reason: "ambiguous"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":4.2}`, reason: "invalid"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":""}`, reason: "missing"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":null}`, reason: "missing"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42`, reason: "invalid"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42}{"id":43}`, reason: "invalid"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42,"x":"&id=43&"}`, headers: []string{asForm}, reason: "invalid"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42}`, headers: []string{"Content-Type: application/json; x"}, reason: "invalid"},
	} {
		t.Run(test.key+" "+test.line+" "+test.body, func(t *testing.T) {
			t.Parallel()
			b := start(t, door, Setup{Key: test.key})
			b.store.Down.Store(true) // nothing is asked of the backend
			got := b.do(test.line, test.body, test.headers...)
			b.expect(got, rowBadKey)
			b.blames(got, strings.Trim(test.key, "{}"), test.reason)
			b.handled(0)
		})
	}
}

// A form that was parsed before the door is the one that the handler gets.
func testParsedForms(t *testing.T, door Door) {
	for name, parse := range map[string]func(*http.Request){
		"Whole":        func(r *http.Request) { _ = r.FormValue("csrf") },
		"NoMultiparts": func(r *http.Request) { _ = r.ParseForm() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, door, Setup{Key: "{form:sku}", Outer: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					parse(r)
					next.ServeHTTP(w, r)
				})
			}})
			b.passed(b.do("POST /plain", "sku=7", asForm), "7")
			b.passed(b.do("POST /plain", part("7"), asPart), "7")
			b.expect(b.do("POST /plain?sku=8", "sku=7", asForm), rowBadKey)
			b.expect(b.do("POST /plain?sku=8", part("7"), asPart), rowBadKey)
		})
	}
}
