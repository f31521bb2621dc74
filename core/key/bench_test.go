package key

import (
	"strings"
	"testing"
)

func BenchmarkKeyExpand(b *testing.B) {
	for _, bb := range []struct{ name, tmpl, value string }{
		{"short", "order:{id}", "42"},
		{"uuid", "order:{id}", "6f1c2a34-9a0b-4c1d-8e5f-0123456789ab"},
		{"encoded", "order:{id}", "a:b c%d"},
		{"two", "{tenant}:{id}", "acme"},
		{"long", "order:{id}", strings.Repeat("x", 300)},
		{"mebibyte", "order:{id}", strings.Repeat("x", 1<<20)},
		{"mebibyte-encoded", "order:{id}", strings.Repeat(":", 1<<20)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			k := MustParse(bb.tmpl)
			value := func(string) (string, error) { return bb.value, nil }
			b.ReportAllocs()
			for b.Loop() {
				if _, err := k.Expand(value); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheckName(b *testing.B) {
	for _, name := range []string{"order:42", strings.Repeat("x", 200), strings.Repeat("é", 100)} {
		b.Run(name[:4], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := CheckName(name); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkJSONValue(b *testing.B) {
	for _, bb := range []struct{ name, doc, path string }{
		{"small", `{"order_id":42,"amount":1200}`, "order_id"},
		{"nested", `{"order":{"id":"6f1c2a34","items":[{"sku":"a","n":1},{"sku":"b","n":2}]},"v":2}`, "order.id"},
		{"64KiB", `{"items":[` + strings.Repeat(`{"sku":"abcdef","n":1},`, 2800) + `0],"id":42}`, "id"},
		{"64KiB-members", `{` + strings.Repeat(`"\u0041bcdef":12345,`, 3300) + `"id":42}`, "id"},
		{"1MiB-string", `{"x":"` + strings.Repeat("x", 1<<20) + `","id":42}`, "id"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			doc := []byte(bb.doc)
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := JSONValue(doc, bb.path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
