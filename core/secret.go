package core

import (
	"crypto/rand"
	"encoding/base64"
)

// newSecret returns 128 random bits in 22 characters. It is the token of one tenure, or the
// identity of a place. It must stay secret, because whoever knows a token can release the lock. It
// is given only to the driver, in a [driver.Claim], which prints without it.
func newSecret() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the process instead
	var text [22]byte
	base64.RawURLEncoding.Encode(text[:], raw[:])
	return string(text[:])
}
