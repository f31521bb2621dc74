package redislock

import (
	"regexp"
	"strings"
)

// inner is the error of a command in a script, as Redis before 7 tells it.
var inner = regexp.MustCompile(`^(?:ERR Error running script \(call to f_[0-9a-f]+\): @user_script:\d+: )?@user_script: ?(\d+): -?(.*)$`)

// modern is an error's text as Redis 7 would say it: the command's own error comes first, and what it means can be
// told by its first words. The line follows.
//
//	ERR Error running script (call to f_<sha>): @user_script:12: @user_script: 12: -READONLY You can't write …
//	READONLY You can't write … script, on @user_script:12.
func modern(text string) string {
	if !strings.Contains(text, "@user_script") {
		return text
	}
	return inner.ReplaceAllString(strings.TrimSpace(text), "$2 script, on @user_script:$1.")
}
