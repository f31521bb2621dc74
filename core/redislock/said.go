package redislock

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// private is a command of which no secret gets into an error. Servers and proxies that do not know a
// command, or do not allow it, answer with its arguments, and cut that off wherever they like:
//
//	ERR unknown command 'evalsha', with args beginning with: '<sha>' '3' … '<half a token>
type private struct{ once }

// SetErr implements redis.Cmder: the client says by it what became of the command.
func (p private) SetErr(err error) {
	if err != nil {
		err = replaced(err, cut(err.Error(), secrets(p.Args())))
	}
	p.Cmd.SetErr(err)
}

// replaced is err with another text: the server's, if err is that, and of the same kind, which its
// first words say.
func replaced(err error, text string) error {
	if text == err.Error() {
		return err
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return failure(text)
	}
	return errors.New(text)
}

// failure is an error of the server's.
type failure string

var _ redis.Error = failure("")

func (f failure) Error() string { return string(f) }

// RedisError implements redis.Error.
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

// member is what stands in a line.
var member = regexp.MustCompile(`^[\w-]{44}$`)

// shown is how many characters of a secret in a row a text may have: of 22 they tell nobody anything.
const shown = 5

// cut leaves out of a text whatever is a piece of a secret.
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

// named says which command it is that a script may not call, where the server does not: up to 7.0, it
// says no more than the line of the script, and of what the script has caught not even that.
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

// explained is err with the name of the command that is missing.
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

// says is a text that a script answers instead of failing with it.
func (c *command) says(text string) failure {
	args := make([]any, len(c.parts))
	for i, part := range c.parts {
		args[i] = part
	}
	return failure(c.script.named(cut(text, secrets(args))))
}
