package core

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/key"
)

// Handoff is what a lease goes on by in another process: whoever has it gets the name that
// [Lease.Detach] has left, with [Locker.Attach]. It works once.
//
// It is a secret, and prints as its name only. It travels by [Handoff.Encode] and
// [ParseHandoff], over a channel that those who may have the lock can read; the lock service has
// a hash of it. The zero Handoff is for no name.
type Handoff struct {
	name   string
	secret [16]byte
}

func newHandoff(name string) Handoff {
	t := Handoff{name: name}
	_, _ = rand.Read(t.secret[:]) // never fails: crypto/rand ends the process instead
	return t
}

// Name returns the name that the hand-off is for.
func (t Handoff) Name() string { return t.name }

// hash is what the lock service knows the hand-off by; "" of the zero Handoff.
func (t Handoff) hash() string {
	if t.name == "" {
		return ""
	}
	sum := sha256.Sum256(t.secret[:])
	return base64.RawURLEncoding.EncodeToString(sum[:])[:driver.HandoffWidth]
}

const handoffVersion = 1

// Encode returns the hand-off with its secret, as at most 290 letters, digits, '-' and '_', for
// [ParseHandoff]: it fits into a header, a JSON string or a URL.
func (t Handoff) Encode() string {
	raw := append([]byte{handoffVersion}, t.secret[:]...)
	return base64.RawURLEncoding.EncodeToString(append(raw, t.name...))
}

// ParseHandoff reads what [Handoff.Encode] has written. Anything else is [ErrInvalid], and the
// error says nothing about what was in it.
func ParseHandoff(s string) (t Handoff, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil && len(raw) > len(t.secret) && raw[0] == handoffVersion {
		t.name = string(raw[1+copy(t.secret[:], raw[1:]):])
	}
	if key.CheckName(t.name) != nil || t.Encode() != s { // there are more ways to write the same
		return Handoff{}, invalidf("hand-off: not one of this version")
	}
	return t, nil
}

// Format prints the hand-off's name for every verb: what is printed may be logged.
func (t Handoff) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "handoff(%q)", t.name) // fmt has no way to return the error
}

// LogValue gives slog the hand-off's name.
func (t Handoff) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(t)) }

// MarshalText fails: an encoder would either lose the secret or give it away unasked. What has
// to travel is a string, from [Handoff.Encode].
func (t Handoff) MarshalText() ([]byte, error) {
	return nil, errors.New("core: a Handoff is not marshalled: send Handoff.Encode, and read it with ParseHandoff")
}
