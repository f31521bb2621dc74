package redislock

import (
	"errors"
	"io"

	"github.com/holdfast-go/holdfast/core/driver"
)

// hungUp explains the end of a connection where an answer should be. Some proxies say no more than that.
func hungUp(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	return driver.Because(err, "the connection was closed in place of an answer: by a server that ends, by a proxy that has no server, "+
		"or by one that does not know the command, such as twemproxy, which cannot be used")
}
