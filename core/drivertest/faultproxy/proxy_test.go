//go:build unix

package faultproxy

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestEveryByteArrivesInOrder(t *testing.T) {
	t.Parallel()
	_, p, c := begin(t, echo)
	p.SetDelay(time.Millisecond, time.Millisecond)
	random := make([]byte, 1<<20)
	_, _ = rand.Read(random)
	sent := hex.EncodeToString(random)
	c.send(sent)
	if got, err := c.receive(soon); got != sent {
		t.Errorf("got %d bytes, %v; want the %d sent", len(got), err, len(sent))
	}
}

func TestClientsEndReachesTheServer(t *testing.T) {
	t.Parallel()
	s, _, c := begin(t, echo)
	c.roundTrip("hello")
	_ = c.Close()
	s.wantEnd(t, io.EOF)
}

func TestDeadTargetLooksLikeAReset(t *testing.T) {
	t.Parallel()
	dead := New(t, "unused")
	dead.Refuse(true)
	p := New(t, dead.Addr())
	conn, err := net.DialTimeout("tcp", p.Addr(), soon)
	if err == nil {
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(soon))
		_, err = conn.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) { // the dial itself may hear of it
		t.Errorf("%v; want a reset", err)
	}
}

func TestCloseMayBeCalledTwiceAndTogether(t *testing.T) {
	t.Parallel()
	_, p, c := begin(t, echo)
	c.roundTrip("hello")
	p.Hold()
	c.send("held for ever")
	p.BlackHole(true)
	var all sync.WaitGroup
	for range 4 {
		all.Go(p.Close)
	}
	all.Wait()
	c.wantReset()
	p.Heal() // must not listen again: the leak check would find it
}
