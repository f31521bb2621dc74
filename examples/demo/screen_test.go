package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOnlyATerminalGetsColoursAndALiveLine(t *testing.T) {
	terminal, err := os.Open(os.DevNull) // a character device too
	noError(t, err)
	t.Cleanup(func() { terminal.Close() })
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	noError(t, err)
	t.Cleanup(func() { file.Close() })

	for _, tt := range []struct {
		name, env, value string
		file             *os.File
		live, colour     bool
	}{
		{"a terminal", "TERM", "xterm", terminal, true, true},
		{"a file", "TERM", "xterm", file, false, false},
		{"a dumb terminal", "TERM", "dumb", terminal, false, false},
		{"NO_COLOR", "NO_COLOR", "1", terminal, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("TERM", "xterm")
			t.Setenv("NO_COLOR", "")
			t.Setenv("WT_SESSION", "1")
			t.Setenv(tt.env, tt.value)
			if s := newScreen(tt.file); s.live != tt.live || s.colour != tt.colour {
				t.Errorf("live %v, colour %v", s.live, s.colour)
			}
		})
	}
}

func TestTheLiveLineIsGoneInTheEnd(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer // read once watch has stopped
	s := &screen{out: &buf, live: true}
	drawn := make(chan struct{}, 100)
	stop := s.watch(func() string {
		drawn <- struct{}{}
		return "half"
	})
	<-drawn
	stop()
	if got := buf.String(); !strings.HasPrefix(got, clearLine+"   half") || !strings.HasSuffix(got, clearLine) {
		t.Errorf("%q", got)
	}
}

func TestTheWidestProgressFitsALine(t *testing.T) {
	t.Parallel()
	r := &result{http: traffic{total: 8}, rpc: traffic{total: 8}, tasks: traffic{total: 8}}
	r.tasks.done.Store(3)
	line := "   " + new(screen).progress(r, 10000, 100*time.Second)
	if n := len([]rune(line)); n > 80 || !strings.Contains(line, "asynq ███░░░░░  ") {
		t.Errorf("%d columns: %s", n, line)
	}
}
