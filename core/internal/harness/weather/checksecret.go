//go:build linux

package weather

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/holdfast-go/holdfast/core"
)

// readTexts is all that the processes of a run have written: histories with the text of every
// error, and logs.
func readTexts(dir string) (texts map[string]string, err error) {
	texts = make(map[string]string)
	for _, pattern := range []string{"*.jsonl", "*.log"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file) //nolint:gosec // G304: the run's own directory
			if err != nil {
				return nil, err
			}
			texts[filepath.Base(file)] = string(text)
		}
	}
	return texts, nil
}

var tokenForm = regexp.MustCompile(`[A-Za-z0-9_-]{22,}`)

// checkSecrets looks for tokens, as the servers saw them, and for hand-offs, in what anybody can read.
func checkSecrets(v *Evidence) (breaches []string) {
	for file, text := range v.Texts {
		for _, word := range tokenForm.FindAllString(text, -1) {
			if t, err := core.ParseHandoff(word); err == nil {
				breaches = append(breaches, fmt.Sprintf("%s: a hand-off for %s", file, t.Name()))
			}
			for _, l := range v.Servers {
				for i := range len(word) - tokenWidth + 1 {
					if whose := l.tokens[word[i:i+tokenWidth]]; whose != "" {
						breaches = append(breaches, fmt.Sprintf("%s: a token of %s", file, whose))
					}
				}
			}
		}
	}
	return breaches
}

const tokenWidth = 22
