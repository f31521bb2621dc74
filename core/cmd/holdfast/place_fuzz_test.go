package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// FuzzPlace has any address, prefix and password: they make a client and a Locker, without a
// word to anybody, or an error without the password.
func FuzzPlace(f *testing.F) {
	f.Add("redis://u:", "@127.0.0.1:6379/1", "holdfast:", false)
	f.Add("rediss://:", "@host?read_timeout=1s", "", true)
	f.Add("", ":6379", "{", false)
	f.Fuzz(func(t *testing.T, before, after, prefix string, cluster bool) {
		const secret = "hunter2"
		at := place{address: before + secret + after, password: secret, prefix: prefix, cluster: cluster}
		rdb, err := at.dial()
		if err != nil {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v", at.address, err)
			}
			return
		}
		locks, err := core.New(redislock.New(rdb, redislock.WithPrefix(prefix)))
		if err == nil {
			err = locks.Close(t.Context())
		}
		if err != nil && !errors.Is(err, core.ErrInvalid) {
			t.Error(err)
		}
		if err := rdb.Close(); err != nil {
			t.Error(err)
		}
	})
}
