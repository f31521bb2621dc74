package redislock

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// private is a command whose errors contain no secret. Servers and proxies that do not know a
// command, or do not allow it, answer with its arguments, and cut them off anywhere:
//
//	ERR unknown command 'evalsha', with args beginning with: '<sha>' '3' … '<half a token>
type private struct{ once }

// SetErr implements redis.Cmder. The client reports a command's error with it.
func (p private) SetErr(err error) {
	if err != nil {
		err = replaced(err, cut(err.Error(), secrets(p.Args())))
	}
	p.Cmd.SetErr(err)
}

// replaced is err with another text. If err is the server's, the result is too. It is of the same
// kind, which its first words say.
func replaced(err error, text string) error {
	if text == err.Error() {
		return err
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return failure(text)
	}
	return errors.New(text)
}

// failure is an error that the server answered.
type failure string

var _ redis.Error = failure("")

func (f failure) Error() string { return string(f) }

// RedisError implements redis.Error: it marks the server's errors.
func (failure) RedisError() {}

// secrets are the tokens, hand-offs and places among arguments.
func secrets(args []any) (all []string) {
	for _, arg := range args {
		text, _ := arg.(string)
		if p, ok := arg.(*string); ok {
			text = *p
		}
		if owner, _, ok := strings.Cut(text, magic); ok {
			all = append(all, strings.TrimLeft(owner, "+*!="))
		} else if member.MatchString(text) {
			all = append(all, text)
		}
	}
	return all
}

// member matches a member of a queue.
var member = regexp.MustCompile(`^[\w-]{44}$`)

// shown is how many characters of a secret, in a row, a text may have. Five of 22 are of no use.
const shown = 5

// cut removes from a text every piece of a secret.
func cut(text string, secrets []string) string {
	pieces := make(map[string]bool)
	for _, secret := range secrets {
		for i := range len(secret) - shown {
			pieces[secret[i:i+shown+1]] = true
		}
	}
	var b strings.Builder
	for i, hidden := 0, 0; i < len(text); i++ {
		if i+shown < len(text) && pieces[text[i:i+shown+1]] {
			if i >= hidden {
				b.WriteString("…")
			}
			hidden = i + shown + 1
		}
		if i >= hidden {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// named adds to a text which command a script may not call, if the server does not say so. Up to 7.0,
// the server names only the line of the script, and for an error that the script caught, not even
// that.
func (s *script) named(text string) string {
	const marker = " (it calls "
	if s == nil || !strings.Contains(text, "can't run this command") || strings.Contains(text, marker) {
		return text
	}
	source := s.source
	if at := scriptLine.FindStringSubmatch(text); at != nil {
		lines := strings.Split(source, "\n")
		if n, err := strconv.Atoi(at[1]); err == nil && 1 <= n && n <= len(lines) && scriptCall.MatchString(lines[n-1]) {
			source = lines[n-1]
		}
	}
	var calls []string
	for _, call := range scriptCall.FindAllStringSubmatch(source, -1) {
		calls = append(calls, call[1])
	}
	slices.Sort(calls)
	return text + marker + strings.Join(slices.Compact(calls), ", ") + ")"
}

// explained is err with the name of the command that the script may not call.
func (s *script) explained(err error) error {
	if err == nil {
		return nil
	}
	return replaced(err, s.named(err.Error()))
}

var (
	scriptLine = regexp.MustCompile(`@user_script:\s?(\d+)`)
	scriptCall = regexp.MustCompile(`redis\.p?call\('(\w+)'`)
)

// says makes an error from a text that a script answers instead of failing with it.
func (c *command) says(text string) failure {
	args := make([]any, len(c.parts))
	for i, part := range c.parts {
		args[i] = part
	}
	return failure(c.script.named(cut(text, secrets(args))))
}
