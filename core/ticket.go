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

// Ticket is what a lease goes on by in another process: whoever has it gets the name that
// [Lease.Detach] has left, with [Locker.Attach]. It works once.
//
// It is a secret, and prints as its name only. It travels by [Ticket.Encode] and
// [ParseTicket], over a channel that those who may have the lock can read; the lock service has
// a hash of it. The zero Ticket is for no name.
type Ticket struct {
	name   string
	secret [16]byte
}

func newTicket(name string) Ticket {
	t := Ticket{name: name}
	_, _ = rand.Read(t.secret[:]) // never fails: crypto/rand ends the process instead
	return t
}

// Name returns the name that the ticket is for.
func (t Ticket) Name() string { return t.name }

// hash is what the lock service knows the ticket by; "" of the zero Ticket.
func (t Ticket) hash() string {
	if t.name == "" {
		return ""
	}
	sum := sha256.Sum256(t.secret[:])
	return base64.RawURLEncoding.EncodeToString(sum[:])[:driver.TicketWidth]
}

const ticketVersion = 1

// Encode returns the ticket with its secret, as at most 290 letters, digits, '-' and '_', for
// [ParseTicket]: it fits into a header, a JSON string or a URL.
func (t Ticket) Encode() string {
	raw := append([]byte{ticketVersion}, t.secret[:]...)
	return base64.RawURLEncoding.EncodeToString(append(raw, t.name...))
}

// ParseTicket reads what [Ticket.Encode] has written. Anything else is [ErrInvalid], and the
// error says nothing about what was in it.
func ParseTicket(s string) (t Ticket, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil && len(raw) > len(t.secret) && raw[0] == ticketVersion {
		t.name = string(raw[1+copy(t.secret[:], raw[1:]):])
	}
	if key.CheckName(t.name) != nil || t.Encode() != s { // there are more ways to write the same
		return Ticket{}, invalidf("ticket: not one of this version")
	}
	return t, nil
}

// Format prints the ticket's name for every verb: what is printed may be logged.
func (t Ticket) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "ticket(%q)", t.name) // fmt has no way to return the error
}

// LogValue gives slog the ticket's name.
func (t Ticket) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(t)) }

// MarshalText fails: an encoder would either lose the secret or give it away unasked. What has
// to travel is a string, from [Ticket.Encode].
func (t Ticket) MarshalText() ([]byte, error) {
	return nil, errors.New("core: a Ticket is not marshalled: send Ticket.Encode, and read it with ParseTicket")
}

// WithTicket has one call take the name over that [Lease.Detach] has left for the ticket: for Do,
// Begin and DoValue, as [Locker.Attach] does for itself. It is for a call with the ticket's name;
// elsewhere, and in New, With, Guard and AcquireAll, it is [ErrInvalid], and so is the zero Ticket.
// The default is none.
func WithTicket(t Ticket) Option {
	return optionFunc(func(c *config) {
		if t.name == "" {
			c.check(invalidf("WithTicket: the zero Ticket"))
		}
		c.ticket = t
	})
}
