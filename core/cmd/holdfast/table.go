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

	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

var header = []string{"NAME", "HELD BY", "KIND", "FOR", "TTL", "LINE", "FENCE", "HANDLE"}

// widths are those of the columns at most: 100 characters without the last two, with the gaps between them.
var widths = []int{28, 24, 10, 4, 4, 17, 16, 16}

// narrow is how many columns there are without fences and handles.
const narrow = 6

// inTable is how many of a line a row shows.
const inTable = 3

// rows are what is said of a name: one for each holder. Only the first one tells of the line.
func rows(info inspect.LeaseInfo, most int, all bool) (lines [][]string) {
	for _, h := range info.Holders {
		part := info
		part.Label, part.Handle, part.Remaining, part.HeldFor = h.Label, h.Handle, h.Remaining, h.HeldFor
		if len(lines) > 0 {
			part.Line = nil
		} else if h.HeldFor == 0 {
			part.HeldFor = info.HeldFor // that of the first is known, if no other
		}
		lines = append(lines, columns(part, most, all))
	}
	if lines == nil {
		lines = append(lines, columns(info, most, all))
	}
	return lines
}

func columns(info inspect.LeaseInfo, most int, all bool) []string {
	fence, since, ttl := "-", "-", human(info.Remaining)
	if info.Fence > 0 {
		fence = strconv.FormatUint(info.Fence, 10)
	}
	if info.HeldFor > 0 {
		since = human(info.HeldFor)
	}
	if info.Remaining == 0 {
		ttl = "none"
	}
	row := []string{
		clean(info.Name), cmp.Or(clean(info.Label), "-") + ofNodes(info), kind(info), since, ttl, inLine(info.Line, most),
		fence, cmp.Or(clean(info.Handle), "-"),
	}
	if !all {
		return row[:narrow]
	}
	return row
}

// kind is how a name is held.
func kind(info inspect.LeaseInfo) string {
	if info.Kind == inspect.HoldLimited {
		return fmt.Sprintf("1 of %d", info.Limit)
	}
	return cmp.Or(string(info.Kind), "-")
}

// ofNodes says how many nodes of a quorum know the holder, where they disagree.
func ofNodes(info inspect.LeaseInfo) string {
	if len(info.Nodes) == 0 {
		return ""
	}
	agree := 0
	for _, n := range info.Nodes {
		if n.Held && n.Handle == info.Handle {
			agree++
		}
	}
	return fmt.Sprintf(" (%d of %d nodes)", agree, len(info.Nodes))
}

// node is what one node of a quorum says.
func node(n inspect.NodeInfo) string {
	switch {
	case n.Silent:
		return "no answer"
	case !n.Held:
		return "not held"
	default:
		return fmt.Sprintf("%s, handle %s, ttl %s", cmp.Or(clean(n.Label), "no label"), cmp.Or(clean(n.Handle), "-"), human(n.Remaining))
	}
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

func inLine(line []inspect.WaiterInfo, most int) string {
	if len(line) == 0 {
		return "-"
	}
	var ages []string
	for _, w := range line[:min(len(line), most)] {
		age := "?"
		if w.Waited > 0 {
			age = human(w.Waited)
		}
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
func writeTable(w io.Writer, infos []inspect.LeaseInfo, all bool) error {
	if len(infos) == 0 {
		return nil
	}
	lines := [][]string{header}
	if !all {
		lines[0] = header[:narrow]
	}
	for _, info := range infos {
		lines = append(lines, rows(info, inTable, all)...)
	}
	_, err := io.WriteString(w, align(lines, widths))
	return err
}

// align makes each column as wide as it has to be, and no wider than it may.
func align(rows [][]string, widths []int) string {
	wide := make([]int, len(widths))
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

// writeStory is all that is known of one name.
func writeStory(w io.Writer, info inspect.LeaseInfo) error {
	var b strings.Builder
	say := func(title, format string, args ...any) {
		fmt.Fprintf(&b, "%-8s "+format+"\n", append([]any{title}, args...)...)
	}
	say("name", "%s", clean(info.Name))
	if !info.Held {
		say("held", "no")
	} else {
		say("kind", "%s", story(info))
	}
	if info.Label != "" {
		say("held by", "%s", clean(info.Label))
	}
	if info.HeldFor > 0 {
		say("for", "%s", human(info.HeldFor))
	}
	if info.Fence > 0 {
		say("fence", "%d", info.Fence)
	}
	if info.Handle != "" {
		say("handle", "%s", clean(info.Handle))
	}
	if info.Held && info.Remaining > 0 {
		say("ttl", "%s", human(info.Remaining))
	}
	for _, h := range info.Holders {
		since := ""
		if h.HeldFor > 0 {
			since = ", for " + human(h.HeldFor)
		}
		say("holder", "%s%s, handle %s, ttl %s", cmp.Or(clean(h.Label), "no label"), since, clean(h.Handle), human(h.Remaining))
	}
	for i, n := range info.Nodes {
		say("node", "%d: %s", i, node(n))
	}
	for i, in := range info.Line {
		say("line", "%d: %s", i+1, waiter(in))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// story is how a name is held, by all its holders.
func story(info inspect.LeaseInfo) string {
	if info.Kind == inspect.HoldLimited {
		return fmt.Sprintf("limited, %d of %d", len(info.Holders), info.Limit)
	}
	return kind(info)
}

func waiter(in inspect.WaiterInfo) string {
	text := cmp.Or(clean(in.Label), "no label")
	if in.Waited > 0 {
		text += ", waits for " + human(in.Waited)
	}
	if !in.Alive {
		text += ", not heard of lately"
	}
	return text
}
