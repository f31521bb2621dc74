//go:build linux

package weather

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

// inject makes one fault happen, for as long as it lasts. A link has one at a time: the end of
// one would end the other.
func (r *run) inject(f Fault) {
	ctx := r.tb.Context()
	f.Who = r.victim(f)
	if r.onLink(f) != nil {
		if !r.links[f.Who].TryLock() {
			return
		}
		defer r.links[f.Who].Unlock()
	}
	if f.Kind == "failover" || f.Kind == "move" || f.Kind == "split" {
		if !r.service.changing.TryLock() {
			return
		}
		defer r.service.changing.Unlock()
		r.service.catchUp(ctx)
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
	if f.Kind == "split" {
		for _, i := range r.cut(f) {
			e.Cut = append(e.Cut, workerID(i))
		}
	}
	r.log.write(e)
	switch {
	case end != nil:
		end()
	case r.onData(ctx, f):
	default:
		r.onServer(ctx, f, id)
	}
	r.log.write(Event{Kind: Healed, ID: id, Fault: f.Kind, Worker: e.Worker})
}

// onLink returns a fault of a worker's links, nil if it is none.
func (r *run) onLink(f Fault) func() {
	var links []*faultproxy.Proxy
	for i := range f.Span {
		links = append(links, r.proxies[f.Who][(f.Node+i)%len(r.service.nodes)])
	}
	all := func(do func(p *faultproxy.Proxy)) {
		for _, p := range links {
			do(p)
		}
	}
	slow := func(there, back time.Duration) { all(func(p *faultproxy.Proxy) { p.SetDelay(there, back) }) }
	dark := func(on bool) { all(func(p *faultproxy.Proxy) { p.BlackHole(on) }) }
	refuse := func(on bool) { all(func(p *faultproxy.Proxy) { r.refuse(p, on) }) }
	during := func(begin, end func()) func() {
		return func() {
			begin()
			time.Sleep(f.For)
			end()
		}
	}
	switch f.Kind {
	case "delay":
		return during(func() { slow(40*time.Millisecond, 20*time.Millisecond) }, func() { slow(0, 0) })
	case "drop":
		return func() {
			for end := time.Now().Add(f.For); time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
				all(func(p *faultproxy.Proxy) { p.DropReply(1) }) // with time for what is sent again to be answered
			}
		}
	case "dark":
		return during(func() { dark(true) }, func() { dark(false) })
	case "fade":
		return func() {
			slow(0, 60*time.Millisecond+f.For%(200*time.Millisecond))
			time.Sleep(f.For / 2)
			dark(true)
			time.Sleep(f.For)
			slow(0, 0)
			dark(false)
		}
	case "astray":
		astray := func(on bool) { all(func(p *faultproxy.Proxy) { p.BlackHoleNew(on) }) }
		return during(func() { astray(true) }, func() { astray(false) })
	case "uneven":
		return during(func() { all(func(p *faultproxy.Proxy) { p.DelayEach(unevenly(f)) }) },
			func() { all(func(p *faultproxy.Proxy) { p.DelayEach(nil) }) })
	case "drip":
		d := r.drippers[f.Who]
		return during(func() { d.slow.Store(true) }, func() { d.slow.Store(false) })
	case "reset":
		return func() { all((*faultproxy.Proxy).Reset) }
	case "refuse":
		return during(func() { refuse(true); all((*faultproxy.Proxy).Reset) }, func() { refuse(false) })
	case "hold":
		var release []func()
		return during(func() { all(func(p *faultproxy.Proxy) { release = append(release, p.Hold()) }) }, func() {
			for _, f := range release {
				f()
			}
		})
	}
	return nil
}

// unevenly has half of all connections be slow, each in its own way: a request on one of them arrives
// after what was sent later on another. A new one that is slow takes three of these times until its first
// request is there: the client says who it is before.
func unevenly(f Fault) func(n int) (toServer, toClient time.Duration) {
	return func(n int) (toServer, toClient time.Duration) {
		random := rand.New(rand.NewPCG(uint64(f.At), uint64(n))) //nolint:gosec // G404, G115: to be repeated, not negative
		if random.IntN(2) == 0 {
			return 0, 0
		}
		return 100*time.Millisecond + time.Duration(random.Int64N(int64(500*time.Millisecond))), 0
	}
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

// victim is the worker that a fault is about, or begins with.
func (r *run) victim(f Fault) int {
	switch f.Kind {
	case "stop":
		return r.holder(f.Who, sharedNames)
	case "split":
		return r.holder(f.Who, []string{longName})
	default:
		return f.Who
	}
}

// holder is the worker that wrote last under one of some names, or other if nobody did: it
// probably still holds what others want.
func (r *run) holder(other int, names []string) int {
	text, err := os.ReadFile(filepath.Join(r.dir, "store.jsonl"))
	if err != nil {
		return other
	}
	for _, line := range slices.Backward(bytes.Split(text, []byte("\n"))) {
		var e Event
		if json.Unmarshal(line, &e) != nil || !slices.Contains(names, e.Name) {
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

func (r *run) onServer(ctx context.Context, f Fault, id string) {
	n := r.service.nodes[f.Node]
	switch f.Kind {
	case "pause":
		n.pause(f.For)
	case "busy":
		const rounds = 60_000_000 // in a second, about; before Redis 7.4, scripts have no clock that goes on
		n.admin.Eval(ctx, "for _ = 1, ARGV[1] do end return 1", nil, int(rounds*f.For.Seconds()))
	case "restart":
		r.restart(f.Node, f.For)
	case "leave": // for longer than anything it knew can be trusted
		r.restart(f.Node, TTL+f.For)
	case "disconnect":
		n.disconnect(ctx)
	case "deafen":
		n.admin.Do(ctx, "client", "kill", "type", "pubsub")
	case "scripts":
		n.admin.ScriptFlush(ctx)
	case "memory":
		n.admin.ConfigSet(ctx, "maxmemory", "1")
		time.Sleep(f.For)
		n.admin.ConfigSet(ctx, "maxmemory", "0")
	case "readonly":
		n.readonly(ctx, f.For)
	case "starve":
		starve(f.For)
	case "failover":
		r.service.failover(ctx, r.tb, f)
	case "split":
		r.split(ctx, f, id)
	case "move":
		r.service.move(ctx, f)
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

// restart kills a server and starts it again with nothing. Nobody reaches it before what it
// does is watched.
func (r *run) restart(node int, pause time.Duration) {
	n := r.service.nodes[node]
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, links := range r.proxies {
		r.refuse(links[node], true)
		links[node].Reset()
	}
	n.unseen.Lock()
	defer n.unseen.Unlock()
	n.server.Kill()
	<-n.watcher.done // it has read all that the server still said
	killed := now()
	_ = n.watcher.stop()
	n.watcher.commands = append(n.watcher.commands, Command{At: killed, Client: admin, Args: []string{restarted}})
	time.Sleep(pause)
	n.server.Restart()
	next, err := watch(n.server.Addr(), n.watcher)
	if err != nil {
		r.tb.Errorf("MONITOR: %v", err)
		return
	}
	n.watcher = next
	for _, links := range r.proxies {
		r.refuse(links[node], false)
	}
}

// refuse begins or ends a fault that has a link refuse connections. The end of one leaves another one be: a server that
// is not watched yet would be reached.
func (r *run) refuse(p *faultproxy.Proxy, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on {
		r.refusals[p]++
	} else {
		r.refusals[p]--
	}
	p.Refuse(r.refusals[p] > 0)
}

// onData changes what the server keeps, and says whether f is such a fault.
func (r *run) onData(ctx context.Context, f Fault) bool {
	key, counter, operator := Prefix+f.Name, "{"+Prefix+"}:v1:fence", r.service.nodes[f.Node].admin
	if r.service.kind == Plain { // each name has its own
		counter = "{" + key + "}:v1:fence"
	}
	switch f.Kind {
	case "flush":
		operator.FlushAll(ctx)
	case "delete":
		operator.Del(ctx, key)
	case "foreign":
		operator.Set(ctx, key, "somebody else's", f.For)
		time.Sleep(f.For)
	case "expire":
		operator.PExpire(ctx, key, time.Millisecond)
	case "persist": // against renewals, and made good in the end
		for end := time.Now().Add(f.For); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			operator.Persist(ctx, key)
		}
		if operator.PTTL(ctx, key).Val() == -1 { // nobody may be left to renew it
			operator.PExpire(ctx, key, TTL)
		}
	case "unline":
		operator.Del(ctx, "{"+key+"}:v1:line")
	case "unbeat":
		operator.Del(ctx, "{"+key+"}:v1:line:beats")
	case "seize":
		r.seize(ctx, f)
	case "counter":
		operator.Del(ctx, counter)
	case "ahead":
		operator.Set(ctx, counter, time.Now().Add(10*time.Minute).UnixMicro(), 0)
	default:
		return false
	}
	return true
}
