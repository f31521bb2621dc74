package rule

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/holdfast-go/holdfast/core"
)

var (
	sourceText = regexp.MustCompile(`\{[^}]*\}`)
	angled     = regexp.MustCompile(`<([\pL_][\pL\d_.-]*)>`)
	// A colon that stands where a routing pattern has one: at the beginning, or behind '/' or another
	// colon. "job:nightly" is text, and so is ":pay" behind a source.
	colon = regexp.MustCompile(`(?:^|[/: ]):([\pL_][\pL\d_-]*)`)
)

// checkLiterals refuses text that was meant to be a source, as other frameworks write them. All
// requests of such a route would share one lock.
func checkLiterals(tmpl string) error {
	text := sourceText.ReplaceAllString(tmpl, "\x00")
	for _, as := range []*regexp.Regexp{angled, colon} {
		if m := as.FindStringSubmatch(text); m != nil {
			return meant(strings.TrimPrefix(strings.TrimLeft(m[0], "/ "), "::"), m[1])
		}
	}
	return nil
}

func meant(text, name string) error {
	return fmt.Errorf("%[1]w: %[2]q is text and no source: did you mean {%[3]s|int}, {%[3]s|uuid} or {%[3]s|text}?", core.ErrInvalid, text, name)
}
