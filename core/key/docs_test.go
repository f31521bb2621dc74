package key

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readKeyDocs returns docs/keys.md and the rows of its tables with this header.
func readKeyDocs(t *testing.T, header string) (text string, tables [][][]string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range strings.Split(string(b), header)[1:] {
		table, _, _ = strings.Cut(table, "\n\n")
		lines := strings.Split(table, "\n")[2:]
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
	return string(b), tables
}

func code(cell string) string { return strings.Trim(cell, "`") }

func TestDocsOfKeysSayWhatKeysDo(t *testing.T) {
	t.Parallel()
	text, tables := readKeyDocs(t, "| template | values | name |")
	if len(tables) != 2 || len(tables[0]) < 10 || len(tables[1]) < 10 {
		t.Fatalf("the tables of names are not there: %q", tables)
	}
	for _, rows := range tables {
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
	if long := mustName(t, "order:{id}", strings.Repeat("x", 300)); !strings.Contains(text, "\n"+long+"\n") {
		t.Errorf("the long name is not %q", long)
	}
}

func TestDocsOfKeysSayWhatFormsDo(t *testing.T) {
	t.Parallel()
	_, tables := readKeyDocs(t, "| form | values | in the name |")
	if len(tables) != 1 || len(tables[0]) < 10 {
		t.Fatalf("the table of forms is not there: %q", tables)
	}
	for _, row := range tables[0] {
		for _, value := range quoted(t, row[1]) {
			name, err := MustParse("{id|" + code(row[0]) + "}").Name(value)
			if want := code(row[2]); (err != nil) != (want == "refused") || err == nil && name != want {
				t.Errorf("%q, %q: %q, %v", row, value, name, err)
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
	_, tables := readKeyDocs(t, "| document | path | value |")
	if len(tables) != 1 || len(tables[0]) < 20 {
		t.Fatalf("the table of JSON is not there: %q", tables)
	}
	for _, row := range tables[0] {
		value, err := JSONValue([]byte(code(row[0])), code(row[1]))
		if want := code(row[2]); (err != nil) != (want == "refused") || err == nil && value != want {
			t.Errorf("%q: %q, %v", row, value, err)
		}
	}
}
