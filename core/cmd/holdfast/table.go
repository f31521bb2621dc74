package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core"
)

var header = []string{"NAME", "HELD BY", "FENCE", "HANDLE", "TTL", "IN LINE, FOR"}

// widths are those of the columns at most: 100 characters with the gaps between them.
var widths = [...]int{22, 15, 16, 16, 4, 17}

// inTable is how many of a line a row shows.
const inTable = 3

// rows are what is said of a name: one for each holder. Only the first one tells of the line.
func rows(info core.LeaseInfo, most int) (all [][]string) {
	for _, h := range info.Holders {
		part := info
		part.Label, part.Handle, part.Remaining = "(shared)", h.Handle, h.Remaining
		if h.Limit > 0 {
			part.Label = fmt.Sprintf("(one of %d)", h.Limit)
		}
		if len(all) > 0 {
			part.Line = nil
		}
		all = append(all, columns(part, most))
	}
	if all == nil {
		all = append(all, columns(info, most))
	}
	return all
}

func columns(info core.LeaseInfo, most int) []string {
	label, fence, ttl := clean(info.Label), "-", human(info.Remaining)
	if info.Kept {
		label = strings.TrimSpace("(kept) " + label)
	}
	if info.Foreign {
		label = "(foreign)"
	}
	if info.Fence > 0 {
		fence = strconv.FormatUint(info.Fence, 10)
	}
	if info.Remaining == 0 {
		ttl = "none"
	}
	return []string{clean(info.Name), cmp.Or(label, "-"), fence, cmp.Or(clean(info.Handle), "-"), ttl, inLine(info.Line, most)}
}

// clean keeps what comes from the server from steering a terminal, or making two rows of one.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

func inLine(line []core.WaiterInfo, most int) string {
	if len(line) == 0 {
		return "-"
	}
	var ages []string
	for _, w := range line[:min(len(line), most)] {
		age := human(w.Waited)
		if !w.Alive {
			age = "(" + age + ")"
		}
		ages = append(ages, age)
	}
	if more := len(line) - len(ages); more > 0 {
		ages = append(ages, fmt.Sprintf("+%d", more))
	}
	return strings.Join(ages, " ")
}

// human says a duration in at most four characters.
func human(d time.Duration) string {
	switch {
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 100*time.Second:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%.0fm", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0fh", d.Hours())
	default:
		return fmt.Sprintf("%.0fd", min(d.Hours()/24, 999))
	}
}

// writeTable is for people.
func writeTable(w io.Writer, infos []core.LeaseInfo) error {
	lines := [][]string{header}
	for _, info := range infos {
		lines = append(lines, rows(info, inTable)...)
	}
	_, err := io.WriteString(w, align(lines))
	return err
}

// align makes each column as wide as it has to be, and no wider than it may.
func align(rows [][]string) string {
	var wide [len(widths)]int
	for _, row := range rows {
		for i, text := range row {
			wide[i] = max(wide[i], min(utf8.RuneCountInString(text), widths[i]))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, text := range row {
			text = cut(text, wide[i])
			line.WriteString(text)
			line.WriteString(strings.Repeat(" ", wide[i]-utf8.RuneCountInString(text)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// cut leaves out the middle of what is too long: names differ at both ends.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	tail := most / 3
	return string(runes[:most-tail-1]) + "…" + string(runes[len(runes)-tail:])
}
