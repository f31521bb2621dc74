package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

// screen is where the demo is watched: a terminal, or a file or pipe that gets plain lines.
type screen struct {
	out    io.Writer
	live   bool // a terminal: the progress line is drawn over itself
	colour bool
}

func newScreen(f *os.File) *screen {
	info, err := f.Stat()
	live := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	if runtime.GOOS == "windows" {
		live = live && os.Getenv("WT_SESSION") != "" // the old console shows escape codes as they are
	}
	return &screen{out: f, live: live, colour: live && os.Getenv("NO_COLOR") == ""}
}

func (s *screen) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, format, args...) // nobody to tell
}

func (s *screen) bold(text string) string { return s.paint("1", text) }
func (s *screen) good(text string) string { return s.paint("32", text) }
func (s *screen) bad(text string) string  { return s.paint("31", text) }

// verdict paints text green or red.
func (s *screen) verdict(ok bool, text string) string {
	if ok {
		return s.good(text)
	}
	return s.bad(text)
}

func (s *screen) paint(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

const clearLine = "\r\x1b[K"

// watch shows what draw says, again and again, until stop is called.
func (s *screen) watch(draw func() string) (stop func()) {
	every, format := 100*time.Millisecond, clearLine+"   %s"
	if !s.live {
		every, format = 2*time.Second, "   %s\n"
	}
	quit, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				s.printf(format, draw())
			}
		}
	}()
	return func() {
		close(quit)
		<-stopped
		if s.live {
			s.printf(clearLine)
		}
	}
}
