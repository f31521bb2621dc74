package driver

import (
	"errors"
	"io"
	"net"
	"os"
)

// Kind is what an answer, or the lack of one, says about the command.
type Kind uint8

// The kinds.
const (
	Unknown  Kind = iota // it may have been executed, or may still be: its outcome is open
	Done                 // no error: it was granted, renewed or released
	HeldBy               // refused: see Meaning.Held
	Marked               // refused: by a *Duplicate
	NotOwner             // the token owns nothing
	Unmarked             // the name was released, and the marker could not be left
	NotDone              // it was certainly not executed, and never will be
)

// Meaning is what an error of any method means.
type Meaning struct {
	Kind Kind
	Held *Held // with HeldBy
	// Refused says that another attempt would end the same, by what the client is.
	Refused bool
	// Nobody says that nobody can get an answer now: the service has said so, a dial has failed, a
	// connection is broken, or a call took too long. It is false for all that the service has said about a
	// name or a caller: a refusal, a wrong type, a missing permission, a reply that makes no sense. It is
	// also false for every error that is not known here. A timeout is the service's fault only if the
	// caller's own time has not ended; core checks that first.
	Nobody bool
}

// Open says that the command may have acted, or may still act, without our knowledge.
func (m Meaning) Open() bool { return m.Kind == Unknown }

// Answered says that the service has executed the command and said what came of it.
func (m Meaning) Answered() bool { return m.Kind != Unknown && m.Kind != NotDone }

// Again says that it is worth sending the same command again: there is no answer, and one can be hoped for.
func (m Meaning) Again() bool { return !m.Answered() && !m.Refused }

// Explain says what err means. Only core's rooms that make calls ask it, and nobody else looks for the
// errors of this package. The first that fits of these counts: nil, *[Held], *[Duplicate], [ErrUnmarked],
// [ErrNotOwner], [ErrNotSent].
func Explain(err error) Meaning {
	if err == nil {
		return Meaning{Kind: Done}
	}
	if h, ok := err.(*Held); ok { //nolint:errorlint // the usual answer, and quick
		return Meaning{Kind: HeldBy, Held: h}
	}
	if h, ok := errors.AsType[*Held](err); ok {
		return Meaning{Kind: HeldBy, Held: h}
	}
	if _, ok := errors.AsType[*Duplicate](err); ok {
		return Meaning{Kind: Marked}
	}
	switch {
	case errors.Is(err, ErrUnmarked):
		return Meaning{Kind: Unmarked}
	case errors.Is(err, ErrNotOwner):
		return Meaning{Kind: NotOwner}
	}
	m := Meaning{Refused: errors.Is(err, ErrRefused), Nobody: nobody(err)}
	if errors.Is(err, ErrNotSent) {
		m.Kind = NotDone
	}
	return m
}

func nobody(err error) bool {
	if errors.Is(err, ErrCannotAnswer) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*os.SyscallError](err); ok { // from clients that write to sockets themselves
		return true
	}
	slow, ok := errors.AsType[net.Error](err)
	return ok && slow.Timeout()
}
