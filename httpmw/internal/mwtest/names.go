package mwtest

import (
	"strings"
	"testing"
)

const (
	asForm = "Content-Type: application/x-www-form-urlencoded"
	asJSON = "Content-Type: application/json"
	asPart = "Content-Type: multipart/form-data; boundary=B"
)

// part is a multipart form with a file.
const part = "--B\r\nContent-Disposition: form-data; name=\"sku\"; filename=\"f\"\r\n\r\nfile\r\n--B--\r\n"

// What a client may write in how many ways, core/internal/harness/httpnames compares with what handlers read.
func testNames(t *testing.T, mount Mount) {
	for _, test := range []struct {
		key, line, body string
		headers         []string
		want            string // the name, or
		reason          string // why there is none
	}{
		{key: "order:{id|int}", line: "POST /orders/42", want: "order:42"},
		{key: "order:{id|int}", line: "POST /orders/042", want: "order:42"},
		{key: "order:{query:id|int}", line: "POST /plain?id=007", want: "order:7"},
		{key: "order:{header:X-Order|uuid}", line: "POST /plain", headers: []string{"X-Order: 6F1C2A349A0B4C1D8E5F0123456789AB"},
			want: "order:6f1c2a34-9a0b-4c1d-8e5f-0123456789ab"},
		{key: "order:{id|text}", line: "POST /orders/a%2Fb", want: "order:a/b"},
		{key: "{id|text}:{id|text}", line: "POST /orders/42", want: "42:42"},
		{key: "job:nightly", line: "POST /plain", want: "job:nightly"},
		{key: "{query:sku|text}", line: "POST /plain?sku=7&sku=7", want: "7"},
		{key: "{query:filter[id]|text}", line: "POST /plain?filter%5Bid%5D=7", want: "7"},
		{key: "{query:sku|text}", line: "POST /plain?sku=7&sku=%37", want: "7"},
		{key: "{query:id|text}:{id|text}", line: "POST /orders/42?id=7", want: "7:42"},
		{key: "{header:X-Tenant|text}", line: "POST /plain", headers: []string{"X-Tenant: a, b"}, want: "a,%20b"},
		{key: "{header:x-tenant|text}:{id|text}", line: "POST /orders/42", headers: []string{"X-TENANT: acme"}, want: "acme:42"},
		{key: "{header:X-Tenant|text}", line: "POST /plain", headers: []string{"X-Tenant: a", "X-Tenant: a"}, want: "a"},
		{key: "{header:Host|text}", line: "POST /plain", headers: []string{"Host: shop.test"}, want: "shop.test"},
		{key: "{body:order.id}", line: "POST /plain", body: `{"order":{"id":42}}`, headers: []string{asJSON}, want: "42"},
		{key: "{body:id}", line: "PUT /plain", body: `{"id":"42"}`, headers: []string{"Content-Type: application/json; charset=utf-8"}, want: "42"},
		{key: "{body:id}:{body:sku}", line: "POST /plain", body: `{"id":42,"sku":"a:b"}`, headers: []string{asJSON}, want: "42:a%3Ab"},
		{key: "{id|int}", line: "POST /orders/4e1", reason: "invalid"},
		{key: "{query:id|int}", line: "POST /plain?id=+42", reason: "invalid"},
		{key: "{header:X-Order|uuid}", line: "POST /plain", headers: []string{"X-Order: 42"}, reason: "invalid"},
		{key: "{query:sku|text}", line: "POST /plain", reason: "missing"},
		{key: "{query:sku|text}", line: "POST /plain?sku=", reason: "missing"},
		{key: "{query:sku|text}", line: "POST /plain?SKU=7", reason: "missing"},
		{key: "{query:sku|text}", line: "POST /plain?sku=7&sku=8", reason: "ambiguous"},
		{key: "{query:sku|text}", line: "POST /plain?sku=7&sku=", reason: "ambiguous"},
		{key: "{query:sku|text}", line: "POST /plain?sku=%zz", reason: "missing"},
		{key: "{header:X-Tenant|text}", line: "POST /plain", reason: "missing"},
		{key: "{header:X-Tenant|text}", line: "POST /plain", headers: []string{"X-Tenant: "}, reason: "missing"},
		{key: "{header:X-Tenant|text}", line: "POST /plain", headers: []string{"X-Tenant: a", "X-Tenant: b"}, reason: "ambiguous"},
		{key: "{header:X-Tenant|text}", line: "POST /plain", headers: []string{"X-Tenant: a", "X-Tenant: "}, reason: "ambiguous"},
		{key: "{body:id}", line: "POST /plain", headers: []string{asJSON}, reason: "missing"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42,"ID":43}`, headers: []string{asJSON}, reason: "ambiguous"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42`, headers: []string{asJSON}, reason: "invalid"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42,"x":"&id=43&"}`, headers: []string{asForm}, reason: "content-type"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42}`, headers: []string{"Content-Type: application/json; x"}, reason: "content-type"},
		{key: "{body:id}", line: "POST /plain", body: `{"id":42}`, reason: "content-type"},                                                      // of no type
		{key: "{body:id}", line: "POST /plain", body: `{"id":42}`, headers: []string{"Content-Type: Application/JSON"}, reason: "content-type"}, // gin reads a form
		{key: "{body:id}", line: "POST /plain", body: `{"id":42}`, headers: []string{asJSON, asForm}, reason: "content-type"},
	} {
		t.Run(test.key+" "+test.line+" "+test.body, func(t *testing.T) {
			t.Parallel()
			b := start(t, mount, Setup{Key: test.key})
			b.store.Down.Store(test.reason != "") // nothing is asked of the backend
			got := b.do(test.line, test.body, test.headers...)
			if test.reason == "" {
				b.passed(got, test.want)
				return
			}
			b.expect(got, rowBadKey)
			source, _, _ := strings.Cut(strings.Trim(test.key, "{}"), "|")
			b.blames(got, source, test.reason)
			b.handled(0)
		})
	}
}
