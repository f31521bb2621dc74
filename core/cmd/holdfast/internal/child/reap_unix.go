//go:build unix

package child

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// reaper collects every child that has ended, if this process is the first one of its container (PID 1): what the
// command leaves behind becomes this process's child, and nobody else collects it. A group of the dead would
// look alive until the grace is over.
type reaper struct {
	once sync.Once

	mu   sync.Mutex                        // held while a process starts: else its end could be taken before its number is known
	news map[int]chan<- syscall.WaitStatus // of those that somebody waits for
}

var orphans reaper

// start is os.StartProcess. If news is not nil, which only PID 1 may ask for, it gets what happens to the process.
func (r *reaper) start(path string, args []string, attr *os.ProcAttr, news chan<- syscall.WaitStatus) (*os.Process, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := os.StartProcess(path, args, attr)
	if err == nil && news != nil {
		r.news[p.Pid] = news
	}
	return p, err
}

// reaping says whether this process is PID 1. The first call begins to collect.
func (r *reaper) reaping() bool {
	if os.Getpid() != 1 {
		return false
	}
	r.once.Do(func() {
		r.news = make(map[int]chan<- syscall.WaitStatus)
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGCHLD)
		go func() {
			for range ended {
				r.collect()
			}
		}()
	})
	return true
}

func (r *reaper) collect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if news := r.news[pid]; news != nil {
			news <- status
			if !status.Stopped() {
				delete(r.news, pid)
			}
		}
	}
}
