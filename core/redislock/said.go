package redislock

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// private is a command whose errors contain no secret. Servers and proxies that do not know a
// command, or do not allow it, answer with its arguments, and cut them off anywhere:
//
//	ERR unknown command 'evalsha', with args beginning with: '<sha>' '3' … '<half a token>
type private struct {
	once
	batch *batch // the commands that share its round trip; nil if there are none
}

// SetErr implements redis.Cmder. The client reports a command's error with it.
func (p private) SetErr(err error) {
	if err != nil {
		err = replaced(err, modern(cut(err.Error(), p.pieces())))
	}
	p.Cmd.SetErr(err)
}

func (p private) pieces() map[string]bool {
	if p.batch == nil {
		return pieces(secrets(p.Args()))
	}
	return p.batch.secret()
}

// batch are commands that share a round trip. If the client cannot read the answer to one of them, it
// reports what it has read as the error of those that follow, too. So none of their errors contains a
// secret of any of them.
type batch struct {
	pipe redis.Pipeliner
	cmds []*redis.Cmd

	once   sync.Once // protects pieces
	pieces map[string]bool
}

func newBatch(pipe redis.Pipeliner) *batch { return &batch{pipe: pipe} }

func (b *batch) secret() map[string]bool {
	b.once.Do(func() {
		var all []string
		for _, cmd := range b.cmds {
			all = append(all, secrets(cmd.Args())...)
		}
		b.pieces = pieces(all)
	})
	return b.pieces
}

func (b *batch) put(ctx context.Context, cmd *redis.Cmd) {
	b.cmds = append(b.cmds, cmd)
	_ = b.pipe.Process(ctx, private{once{cmd}, b}) // only puts it there
}

// exec sends the commands. Each has its reply, or an error.
func (b *batch) exec(ctx context.Context) { _, _ = b.pipe.Exec(ctx) }

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

// pieces are all pieces of secrets that are too long to be shown.
func pieces(secrets []string) map[string]bool {
	all := make(map[string]bool)
	for _, secret := range secrets {
		for i := range len(secret) - shown {
			all[secret[i:i+shown+1]] = true
		}
	}
	return all
}

// cut removes from a text every piece of a secret.
func cut(text string, pieces map[string]bool) string {
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
	return failure(c.script.named(modern(cut(text, pieces(secrets(args))))))
}
