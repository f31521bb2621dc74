//go:build unix

package servers

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

func TestStoppedServerIsGone(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Server){
		"stop":             (*Server).Stop,
		"kill":             (*Server).Kill,
		"stop when paused": func(s *Server) { s.Pause(); s.Stop() },
		"kill when paused": func(s *Server) { s.Pause(); s.Kill() },
		"twice":            func(s *Server) { s.Kill(); s.Stop(); s.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Redis(t)
			pid := s.PID()
			start := time.Now()
			end(s)
			if took := time.Since(start); took > endBound/2 {
				t.Errorf("took %v", took)
			}
			wantGone(t, pid)
			wantRefused(t, s.Addr())
			if s.PID() != 0 {
				t.Errorf("PID is still %d", s.PID())
			}
		})
	}
}

func TestPausedServerIsSilentUntilItResumes(t *testing.T) {
	t.Parallel()
	s := Redis(t)
	c := dial(t, s.Addr())
	for range 10 { // the moment after the pause is the interesting one
		s.Pause()
		c.send("PING")
		line, err := c.receive(quiet / 2)
		if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() {
			t.Fatalf("received %q, %v; want silence", line, err)
		}
		s.Resume()
		c.want("+PONG")
	}
}

func TestARestartKeepsOnlyWhatTheServerHasWritten(t *testing.T) {
	t.Parallel()
	for args, kept := range map[string][]string{"": {"$-1"}, "--appendonly yes --appendfsync always": {"$1", "v"}} {
		s := Redis(t, strings.Fields(args)...)
		dial(t, s.Addr()).do("SET k v", "+OK")
		s.Kill()
		s.Restart()
		dial(t, s.Addr()).do("GET k", kept...)
		s.RestartEmpty()
		dial(t, s.Addr()).do("GET k", "$-1")
	}
}
