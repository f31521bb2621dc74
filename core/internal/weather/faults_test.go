//go:build linux

package weather

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// inject makes one fault happen, for as long as it lasts. A link has one at a time: the end of
// one would end the other.
func (r *run) inject(f Fault) {
	ctx := r.tb.Context()
	if f.Kind == "stop" {
		f.Who = r.holder(f.Who)
	}
	if r.onLink(f) != nil {
		if !r.links[f.Who].TryLock() {
			return
		}
		defer r.links[f.Who].Unlock()
	}
	r.mu.Lock()
	r.faults++
	id := fmt.Sprintf("fault-%d", r.faults)
	r.counts[f.Kind]++
	r.mu.Unlock()
	e := Event{Kind: Faulted, ID: id, Fault: f.Kind, Worker: workerID(f.Who), Name: f.Name}
	end := r.onLink(f)
	if end == nil {
		end = r.onProcess(f)
	}
	if end == nil {
		e.Worker = ""
	}
	r.log.write(e)
	switch {
	case end != nil:
		end()
	case r.onData(ctx, f):
	default:
		r.onServer(ctx, f)
	}
	r.log.write(Event{Kind: Healed, ID: id, Fault: f.Kind, Worker: e.Worker})
}

// onLink returns a fault of a worker's link, nil if it is none.
func (r *run) onLink(f Fault) func() {
	p := r.proxies[f.Who]
	switch f.Kind {
	case "delay":
		return func() {
			p.SetDelay(40*time.Millisecond, 20*time.Millisecond)
			time.Sleep(f.For)
			p.SetDelay(0, 0)
		}
	case "drop":
		return func() {
			for end := time.Now().Add(f.For); time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
				p.DropReply(1) // with time for what is sent again to be answered
			}
		}
	case "dark":
		return func() {
			p.BlackHole(true)
			time.Sleep(f.For)
			p.BlackHole(false)
		}
	case "fade":
		return func() {
			p.SetDelay(0, 60*time.Millisecond+f.For%(200*time.Millisecond))
			time.Sleep(f.For / 2)
			p.BlackHole(true)
			time.Sleep(f.For)
			p.SetDelay(0, 0)
			p.BlackHole(false)
		}
	case "reset":
		return p.Reset
	case "refuse":
		return func() {
			p.Refuse(true)
			p.Reset()
			time.Sleep(f.For)
			p.Refuse(false)
		}
	case "hold":
		return func() {
			release := p.Hold()
			time.Sleep(f.For)
			release()
		}
	}
	return nil
}

// onProcess returns a fault of a worker's process, nil if it is none.
func (r *run) onProcess(f Fault) func() {
	switch f.Kind {
	case "stop":
		return func() {
			_ = r.signal(f.Who, syscall.SIGSTOP)
			time.Sleep(f.For)
			_ = r.signal(f.Who, syscall.SIGCONT)
		}
	case "kill":
		return func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.workers[f.Who].kill()
			time.Sleep(f.For)
			r.startWorker(f.Who)
		}
	}
	return nil
}

// holder is the worker that wrote last, or other if nobody did: it probably still holds a name
// that others want.
func (r *run) holder(other int) int {
	text, err := os.ReadFile(filepath.Join(r.dir, "store.jsonl"))
	if err != nil {
		return other
	}
	for _, line := range slices.Backward(bytes.Split(text, []byte("\n"))) {
		var e Event
		if json.Unmarshal(line, &e) != nil || !slices.Contains(sharedNames, e.Name) {
			continue
		}
		for i := range r.workers {
			if strings.HasPrefix(e.Worker, workerID(i)+".") {
				return i
			}
		}
	}
	return other
}

func (r *run) signal(who int, s syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.workers[who].cmd.Process.Signal(s) // of a successor, if it was killed meanwhile: harmless
}

func (r *run) onServer(ctx context.Context, f Fault) {
	switch f.Kind {
	case "pause":
		r.mu.Lock()
		defer r.mu.Unlock()
		r.server.Pause()
		time.Sleep(f.For)
		r.server.Resume()
	case "busy":
		r.admin.Eval(ctx, `local stop = os.clock() + ARGV[1] repeat until os.clock() > stop`, nil, f.For.Seconds())
	case "restart":
		r.restart(f.For)
	case "disconnect":
		for _, line := range r.connections() { // not the one that watches
			_, id, _ := strings.Cut(line, "id=")
			id, _, _ = strings.Cut(id, " ")
			r.admin.ClientKillByFilter(ctx, "id", id)
		}
	case "deafen":
		r.admin.Do(ctx, "client", "kill", "type", "pubsub")
	case "scripts":
		r.admin.ScriptFlush(ctx)
	case "memory":
		r.admin.ConfigSet(ctx, "maxmemory", "1")
		time.Sleep(f.For)
		r.admin.ConfigSet(ctx, "maxmemory", "0")
	case "starve":
		starve(f.For)
	default:
		r.tb.Errorf("no such fault: %q", f.Kind)
	}
}

// starve leaves little of the processors to anybody else.
func starve(d time.Duration) {
	end := time.Now().Add(d)
	done := make(chan struct{})
	const greedy = 8
	for range greedy {
		go func() {
			for time.Now().Before(end) { // it is meant to spin
			}
			done <- struct{}{}
		}()
	}
	for range greedy {
		<-done
	}
}

// restart kills the server and starts it again with nothing. Nobody reaches it before what
// it does is watched.
func (r *run) restart(pause time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.proxies {
		p.Refuse(true)
		p.Reset()
	}
	r.server.Kill()
	<-r.watcher.done // it has read all that the server still said
	killed := now()
	_ = r.watcher.stop()
	r.watcher.commands = append(r.watcher.commands, Command{At: killed, Client: admin, Args: []string{restarted}})
	time.Sleep(pause)
	r.server.Restart()
	next, err := watch(r.server.Addr(), r.watcher)
	if err != nil {
		r.tb.Errorf("MONITOR: %v", err)
		return
	}
	r.watcher = next
	for _, p := range r.proxies {
		p.Refuse(false)
	}
}

// onData changes what the server keeps, and says whether f is such a fault.
func (r *run) onData(ctx context.Context, f Fault) bool {
	key, counter := Prefix+f.Name, "{"+Prefix+"}:v1:fence"
	switch f.Kind {
	case "flush":
		r.admin.FlushAll(ctx)
	case "delete":
		r.admin.Del(ctx, key)
	case "foreign":
		r.admin.Set(ctx, key, "somebody else's", f.For)
		time.Sleep(f.For)
	case "expire":
		r.admin.PExpire(ctx, key, time.Millisecond)
	case "persist":
		r.admin.Persist(ctx, key)
	case "counter":
		r.admin.Del(ctx, counter)
	case "ahead":
		r.admin.Set(ctx, counter, time.Now().Add(10*time.Minute).UnixMicro(), 0)
	default:
		return false
	}
	return true
}
