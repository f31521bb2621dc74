package faultproxy_test

import (
	"net"
	"testing"

	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

func TestAPortIsKeptWhileDialsAreRefused(t *testing.T) {
	t.Parallel()
	p := faultproxy.New(t, "127.0.0.1:1")
	p.Refuse(true)
	if c, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", p.Addr()); err == nil {
		_ = c.Close()
		t.Errorf("another proxy could take %s", p.Addr())
	}
	p.Heal()
}
