//go:build unix

package servers

import (
	"errors"
	"io"
	"os"
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
	c, answer := dial(t, s.Addr()), make([]byte, 64)
	for range 10 { // the moment after the pause is the interesting one
		s.Pause()
		_, _ = io.WriteString(c, "PING\r\n")
		_ = c.SetReadDeadline(time.Now().Add(quiet / 2))
		if n, err := c.Read(answer); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("received %q, %v; want silence", answer[:n], err)
		}
		s.Resume()
		_ = c.SetReadDeadline(time.Now().Add(soon))
		if n, err := c.Read(answer); string(answer[:n]) != "+PONG\r\n" {
			t.Fatalf("received %q, %v", answer[:n], err)
		}
	}
}

func TestARestartKeepsOnlyWhatTheServerHasWritten(t *testing.T) {
	t.Parallel()
	for args, kept := range map[string]string{"": "<nil>", "--appendonly yes --appendfsync always": "v"} {
		s := Redis(t, strings.Fields(args)...)
		wants(t, s.Addr(), "SET k v", "OK")
		s.Kill()
		s.Restart()
		wants(t, s.Addr(), "GET k", kept)
		s.RestartEmpty()
		wants(t, s.Addr(), "GET k", "<nil>")
	}
}
