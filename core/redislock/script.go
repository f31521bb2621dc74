package redislock

import (
	"crypto/sha1" //nolint:gosec // G505: Redis names scripts by their SHA-1
	"embed"
	"encoding/hex"
	"regexp"
)

//go:embed scripts/*.lua
var scripts embed.FS

var (
	acquireScript = newScript("acquire.lua")
	claimScript   = newScript("claim.lua")
	renewScript   = newScript("renew.lua")
	releaseScript = newScript("release.lua")
	keepScript    = newScript("keep.lua")
	attachScript  = newScript("attach.lua")

	joinScript         = newScript("join.lua")
	extendScript       = newScript("extend.lua")
	partScript         = newScript("part.lua")
	waitTogetherScript = newScript("wait_together.lua")
	waitScript         = newScript("wait.lua")
	leaveScript        = newScript("leave.lua")
	yieldScript        = newScript("yield.lua")
)

type script struct{ source, sha string }

var include = regexp.MustCompile(`(?m)^-- include (\S+)\n`)

// newScript reads a script and the files that it includes.
func newScript(name string) *script {
	source := include.ReplaceAllStringFunc(read(name), func(line string) string {
		return read(include.FindStringSubmatch(line)[1])
	})
	sum := sha1.Sum([]byte(source)) //nolint:gosec // G401: as above
	return &script{source, hex.EncodeToString(sum[:])}
}

func read(name string) string {
	text, err := scripts.ReadFile("scripts/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}
