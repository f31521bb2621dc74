package key

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

// The tables of names. The guide has the rows that its readers need, and testdata the others.
const (
	guide = "../../docs/guides/names.md"
	more  = "testdata/names.md"
)

// readTables returns the rows of a page's tables with this header.
func readTables(t *testing.T, page, header string) (tables [][][]string) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range strings.Split(string(b), header)[1:] {
		table, _, _ = strings.Cut(strings.TrimSpace(table), "\n\n")
		lines := strings.Split(table, "\n")[1:]
		rows := make([][]string, 0, len(lines))
		for _, line := range lines {
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
		tables = append(tables, rows)
	}
	return tables
}

// everyTable returns those of both, and checks how many rows there are in both.
func everyTable(t *testing.T, header string, sizes ...int) (tables [][][]string) {
	t.Helper()
	shown, others := readTables(t, guide, header), readTables(t, more, header)
	if len(shown) != len(sizes) || len(others) != len(sizes) {
		t.Fatalf("%q: %d and %d tables, want %d", header, len(shown), len(others), len(sizes))
	}
	for i, size := range sizes {
		if rows := len(shown[i]) + len(others[i]); rows < size {
			t.Errorf("%q: %d rows, want %d", header, rows, size)
		}
	}
	return append(shown, others...)
}

func code(cell string) string { return strings.Trim(cell, "`") }

func TestDocsOfKeysSayWhatKeysDo(t *testing.T) {
	t.Parallel()
	for _, rows := range everyTable(t, "| template | values | name |", 10, 10) {
		names := make([]string, 0, len(rows))
		for _, row := range rows {
			name, err := MustParse(code(row[0])).Name(quoted(t, row[1])...)
			if want := code(row[2]); (err != nil) != (want == "refused") || err == nil && name != want {
				t.Errorf("%q: %q, %v", row, name, err)
			}
			if slices.Contains(names, name) {
				t.Errorf("%q: the name is in the table twice", row)
			}
			names = append(names, name)
		}
	}
	const long = "order:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx%sha256:3914a97306f5b27aff04d21c72b3e767a9383f43a0b07f7fddf78d0fa4c6f0ab"
	if name := mustName(t, MustParse("order:{id}"), strings.Repeat("x", 300)); name != long {
		t.Errorf("the long name is %q", name)
	}
}

func TestDocsOfKeysSayWhatFormsDo(t *testing.T) {
	t.Parallel()
	for _, row := range slices.Concat(everyTable(t, "| form | values | in the name |", 10)...) {
		k := MustParse("{id|" + code(row[0]) + "}")
		for _, value := range quoted(t, row[1]) {
			name, err := k.Name(value)
			if want := code(row[2]); (err != nil) != (want == "refused") || err == nil && name != want {
				t.Errorf("%q, %q: %q, %v", row, value, name, err)
			}
			if err == nil {
				continue
			}
			_, other := k.Name("?")
			source, ok := errors.AsType[*SourceError](err)
			if !ok || source.Source != "id" || source.Reason() != "invalid" || !errors.Is(err, invalid.Err) || err.Error() != other.Error() {
				t.Errorf("%q, %q: %v is not of the source, or has something of the value", row, value, err)
			}
		}
	}
}

// quoted returns the strings of a cell.
func quoted(t *testing.T, cell string) (values []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("`(\"[^`]*\")`").FindAllStringSubmatch(cell, -1) {
		v, err := strconv.Unquote(m[1])
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return values
}

func TestDocsOfKeysSayWhatJSONValueDoes(t *testing.T) {
	t.Parallel()
	for _, row := range slices.Concat(everyTable(t, "| document | path | value |", 20)...) {
		value, err := JSONValue([]byte(code(row[0])), code(row[1]))
		if want := code(row[2]); (err != nil) != (want == "refused") || err == nil && value != want {
			t.Errorf("%q: %q, %v", row, value, err)
		}
	}
}
