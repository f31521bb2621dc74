package core

import (
	"crypto/rand"
	"encoding/base64"
)

// newSecret returns 128 random bits in 22 characters: the owner of one tenure. It is a
// secret, since whoever knows it can release the lock: it is handed to the driver in a
// [driver.Claim], which prints without it, and to nobody else.
func newSecret() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the process instead
	var text [22]byte
	base64.RawURLEncoding.Encode(text[:], raw[:])
	return string(text[:])
}
