package redislock

import (
	"embed"
	"regexp"
	"strings"
)

//go:embed scripts/*.lua
var scripts embed.FS

var (
	acquireScript = newScript("acquire.lua")
	renewScript   = newScript("renew.lua")
	releaseScript = newScript("release.lua")
	keepScript    = newScript("keep.lua")

	extendScript = newScript("extend.lua")
	partScript   = newScript("part.lua")
	leaveScript  = newScript("leave.lua")
	rankScript   = newScript("rank.lua")

	askScript         = newScript("ask.lua")
	askTogetherScript = newScript("ask_together.lua")
)

type script struct{ source, sha string }

//go:generate go test -run ^TestTheDigestsAreThoseOfTheScripts$ . -args -write

// newScript reads a script and the files that it includes. An include says which key each word stands
// for that the file has in place of a key.
//
// So each call in a script names its keys as KEYS[n]. Some servers and proxies look for that, and refuse
// a key that is a variable, or is not declared.
//
// Redis names scripts by their SHA-1, which
// a program in FIPS 140-only mode may not compute. So the digests are written down.
//
// With a digest that is not the script's, each call would take two round trips: see command.alone.
func newScript(name string) *script { return &script{source(name), digests[name]} }

var include = regexp.MustCompile(`(?m)^-- include (\S+)((?: [A-Z]+=KEYS\[[^]]+\])*)\n`)

var word = regexp.MustCompile(` ([A-Z]+)=(KEYS\[[^]]+\])`)

func source(name string) string {
	return include.ReplaceAllStringFunc(read(name), func(line string) string {
		part := include.FindStringSubmatch(line)
		text := read(part[1])
		for _, key := range word.FindAllStringSubmatch(part[2], -1) {
			text = strings.ReplaceAll(text, ", "+key[1], ", "+key[2])
		}
		return text
	})
}

func read(name string) string {
	text, err := scripts.ReadFile("scripts/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}
