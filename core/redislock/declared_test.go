package redislock

import (
	"regexp"
	"strings"
	"testing"
)

// Proxies read a script before they run it. They look for keys that are not KEYS[n].
func TestEveryCallInAScriptNamesItsKeysLiterally(t *testing.T) {
	t.Parallel()
	var (
		call    = regexp.MustCompile(`redis\.p?call\(([^,)]*)((?:, [^,)]*)*)`)
		literal = regexp.MustCompile(`^KEYS\[\d\]$`)
		ofKeys  = regexp.MustCompile(`^unpack\((KEYS|locks|lines|freed)$`)
		inLoop  = regexp.MustCompile(`^KEYS\[(\d \* )?i( [+-] \d)?\]$`)
	)
	for name := range digests {
		many := name == "renew.lua" || name == "extend.lua" || strings.HasSuffix(name, "_many.lua")
		text := source(name)
		for _, found := range call.FindAllStringSubmatch(text, -1) {
			args := strings.Split(found[2], ", ")[1:]
			switch command := strings.Trim(found[1], "'"); command {
			case "TIME", "PUBLISH", "SPUBLISH":
				continue
			case "ARGV[3]": // of the guard, which runs what it is asked to
				args = args[:1]
			case "EXISTS", "DEL", "MGET":
			default:
				args = args[:1]
			}
			for _, key := range args {
				if literal.MatchString(key) || many && (inLoop.MatchString(key) || ofKeys.MatchString(key)) {
					continue
				}
				t.Errorf("%s: %s: the key is %s", name, found[0], key)
			}
		}
		if strings.Contains(text, "ARGV[1] ..") || regexp.MustCompile(`KEYS\[[^]]+\] \.\.`).MatchString(text) {
			t.Errorf("%s makes a key of another one", name)
		}
	}
}
