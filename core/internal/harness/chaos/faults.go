//go:build linux

package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
)

// Fault is one fault of a schedule.
type Fault struct {
	At   time.Duration // since the traffic began
	For  time.Duration // 0 if it is over at once
	Kind string
	Who  int    // the worker, of faults of a process or a link
	Node int    // the server, of its faults; of a link's the first one
	Span int    // to how many servers a worker's links are disturbed
	Name string // of faults of a key
}

// faultKinds: how often each comes in proportion, how long it lasts at most, and in which services; in all of them, if none
// is said.
var faultKinds = []struct {
	name  string
	share int
	most  time.Duration
	in    []string
}{
	// A worker's links.
	{"delay", 5, 900 * time.Millisecond, linked},
	{"drop", 8, 1500 * time.Millisecond, linked}, // replies
	{"cut", 3, 900 * time.Millisecond, linked},   // connections, in the middle of a request or a reply
	{"dark", 4, 2200 * time.Millisecond, linked},
	{"fade", 5, 2200 * time.Millisecond, linked}, // slow, then dark
	{"reset", 3, 0, linked},
	{"refuse", 2, 900 * time.Millisecond, linked},
	{"hold", 3, 700 * time.Millisecond, linked},    // requests arrive later
	{"astray", 2, 1500 * time.Millisecond, linked}, // new connections go nowhere
	{"uneven", 4, 1500 * time.Millisecond, linked}, // some connections are slow, and open slowly
	// A worker's process.
	{"stop", 5, 2200 * time.Millisecond, nil},
	{"kill", 2, 300 * time.Millisecond, nil},
	{"starve", 1, 300 * time.Millisecond, nil}, // all of them
	// A server.
	{"pause", 2, 1300 * time.Millisecond, linked},
	{"crash", 2, 300 * time.Millisecond, others},
	{"restart", 1, 100 * time.Millisecond, []string{One}},   // it has forgotten everything
	{"leave", 2, 800 * time.Millisecond, []string{Redlock}}, // a restart that keeps the restart rule
	{"busy", 2, 400 * time.Millisecond, redises},            // a slow script
	{"disconnect", 2, 0, redises},                           // CLIENT KILL
	{"deafen", 2, 0, redises},                               // CLIENT KILL TYPE pubsub
	{"scripts", 3, 0, redises},                              // SCRIPT FLUSH
	{"memory", 2, 600 * time.Millisecond, redises},
	{"readonly", 2, 600 * time.Millisecond, []string{One, Redlock}},
	{"end", 2, 0, []string{Postgres, MySQL}},           // all connections
	{"rows", 3, 1500 * time.Millisecond, sqls},         // are locked, by somebody else's transaction
	{"frozen", 2, 2 * time.Second, []string{Postgres}}, // one of the server's processes, with what it has locked
	{"failover", 3, 0, []string{Replicas}},
	{"move", 8, 300 * time.Millisecond, []string{Cluster}}, // the slot of a name
	// The data.
	{"flush", 1, 0, []string{One}},
	{"delete", 3, 0, []string{One}},
	{"foreign", 3, 500 * time.Millisecond, []string{One}},
	{"expire", 3, 0, []string{One}},
	{"persist", 2, 600 * time.Millisecond, []string{One}},
	{"counter", 2, 0, []string{One}}, // the fence counter is deleted
	{"ahead", 0, 0, []string{One}},   // it stands ahead of the clock, as it does when that is set back
}

// forgetful faults take the fence counter away. After "ahead" they would make fences fall, which is no promise: fences grow
// as long as counter and clock are not both set back.
var forgetful = []string{"restart", "flush", "counter"}

// harmless faults keep nobody from asking: they take names away, and leave everybody able to hear of it.
var harmless = []string{"flush", "delete", "foreign", "expire", "persist", "counter", "ahead", "deafen", "scripts"}

// Plan is what a run is made of.
type Plan struct {
	Seed        uint64
	Service     string
	Servers     int
	Workers     int
	Length, Gap time.Duration // there is a fault every gap or so
	Only        []string      // kinds of faults; all of them if none is named
}

// NewSchedule makes the faults of a plan. The same plan makes the same ones.
func NewSchedule(p Plan) (faults []Fault) {
	random := rand.New(rand.NewPCG(p.Seed, 0)) //nolint:gosec // G404: a seed is to be repeated
	names := slices.Concat(sharedNames, otherNames)
	for i := range p.Workers {
		names = append(names, soloName(workerID(i)))
	}
	var lots []int // the kinds that may come, each as often as its share
	for i, k := range faultKinds {
		if (len(p.Only) == 0 || slices.Contains(p.Only, k.name)) && (k.in == nil || slices.Contains(k.in, p.Service)) {
			lots = append(lots, slices.Repeat([]int{i}, max(1, k.share))...)
		}
	}
	ahead := false
	for at := p.Gap; at < p.Length && len(lots) > 0; at += p.Gap/2 + time.Duration(random.Int64N(int64(p.Gap))) {
		k := faultKinds[lots[random.IntN(len(lots))]]
		f := Fault{
			At: at, Kind: k.name, Who: random.IntN(p.Workers), Name: names[random.IntN(len(names))],
			Node: random.IntN(max(1, p.Servers)), Span: 1 + random.IntN(max(1, p.Servers)),
		}
		if k.most > 0 {
			f.For = k.most/3 + time.Duration(random.Int64N(int64(k.most)*2/3))
		}
		if k.name == "ahead" && at < p.Length/2 || ahead && slices.Contains(forgetful, k.name) {
			continue
		}
		ahead = ahead || k.name == "ahead"
		faults = append(faults, f)
	}
	return faults
}

func workerID(i int) string { return "w" + strconv.Itoa(i+1) }

// inject makes one fault happen, for as long as it lasts. A link has one at a time: the end of one would end the other.
func (r *run) inject(f Fault) {
	ctx := r.tb.Context()
	if f.Kind == "stop" {
		f.Who = r.holder(f.Who)
	}
	strike, mine := r.onLink(f), true
	switch {
	case strike != nil:
		if !r.links[f.Who].TryLock() {
			return
		}
		defer r.links[f.Who].Unlock()
	case f.Kind == "failover" || f.Kind == "move":
		if !r.service.changing.TryLock() {
			return
		}
		defer r.service.changing.Unlock()
	}
	if strike == nil {
		strike = r.onProcess(f)
	}
	if strike == nil {
		strike, mine = r.onServer(ctx, f), false
	}
	if strike == nil {
		return // SQLite has neither links nor servers
	}
	e := Event{Kind: Faulted, ID: r.count(f.Kind), Fault: f.Kind, Name: f.Name}
	if mine {
		e.Worker = workerID(f.Who)
	}
	r.log.write(e)
	strike()
	r.log.write(Event{Kind: Healed, ID: e.ID, Fault: f.Kind, Worker: e.Worker})
}

// count gives a fault its number.
func (r *run) count(kind string) (id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults++
	r.counts[kind]++
	return fmt.Sprintf("fault-%d", r.faults)
}

// onLinks are the faults of a link: what begins them. See calm for the end.
var onLinks = map[string]func(r *run, f Fault, p *faultproxy.Proxy){
	"delay": func(_ *run, _ Fault, p *faultproxy.Proxy) { p.SetDelay(40*time.Millisecond, 20*time.Millisecond) },
	"drop":  func(_ *run, f Fault, p *faultproxy.Proxy) { again(f, func() { p.DropReply(1) }) },
	"cut": func(_ *run, f Fault, p *faultproxy.Proxy) {
		cut := p.CutReply
		if f.Who%2 == 0 {
			cut = p.CutRequest
		}
		again(f, func() { cut(1) })
	},
	"dark": func(_ *run, _ Fault, p *faultproxy.Proxy) { p.BlackHole(true) },
	"fade": func(_ *run, f Fault, p *faultproxy.Proxy) {
		p.SetDelay(0, 60*time.Millisecond+f.For%(200*time.Millisecond))
		time.AfterFunc(f.For/3, func() { p.BlackHole(true) })
	},
	"reset":  func(_ *run, _ Fault, p *faultproxy.Proxy) { p.Reset() },
	"refuse": func(r *run, _ Fault, p *faultproxy.Proxy) { r.refuse(p, true) },
	"hold":   func(r *run, _ Fault, p *faultproxy.Proxy) { r.letGo.Store(p, p.Hold()) },
	"astray": func(_ *run, _ Fault, p *faultproxy.Proxy) { p.BlackHoleNew(true) },
	"uneven": func(_ *run, f Fault, p *faultproxy.Proxy) { p.DelayEach(unevenly(f)) },
}

// again loses something now and then, with time for what is sent again to be answered.
func again(f Fault, lose func()) {
	for after := time.Duration(0); after < f.For; after += 250 * time.Millisecond {
		time.AfterFunc(after, lose)
	}
}

// calm ends a fault of a link, and leaves a server be that is not to be reached. A stream with a hole is nothing that TCP would deliver;
// go-redis gives it up by itself.
func (r *run) calm(f Fault, p *faultproxy.Proxy) {
	p.SetDelay(0, 0)
	p.DelayEach(nil)
	p.BlackHole(false)
	p.BlackHoleNew(false)
	if release, held := r.letGo.LoadAndDelete(p); held {
		release.(func())()
	}
	switch lossy := f.Kind == "drop" || f.Kind == "cut"; {
	case f.Kind == "refuse":
		r.refuse(p, false)
	case lossy && !r.isRedis():
		p.Reset()
	}
}

// onLink returns a fault of a worker's links, nil if it is none.
func (r *run) onLink(f Fault) func() {
	begin := onLinks[f.Kind]
	if begin == nil || len(r.service.nodes) == 0 {
		return nil
	}
	return func() {
		for i := range f.Span {
			p := r.proxies[f.Who][(f.Node+i)%len(r.service.nodes)]
			begin(r, f, p)
			defer r.calm(f, p)
		}
		time.Sleep(f.For)
	}
}

// unevenly has half of all connections be slow, each in its own way: a request on one of them arrives after what was sent
// later on another. A new one that is slow takes three of these times until its first request is there: the client says who it is
// before.
func unevenly(f Fault) func(n int) (toServer, toClient time.Duration) {
	return func(n int) (toServer, toClient time.Duration) {
		random := rand.New(rand.NewPCG(uint64(f.At), uint64(n))) //nolint:gosec // G404, G115: to be repeated, not negative
		if random.IntN(2) == 0 {
			return 0, 0
		}
		return 100*time.Millisecond + time.Duration(random.Int64N(int64(500*time.Millisecond))), 0
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
	if on {
		p.Reset()
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

// holder is the worker that wrote last under one of the shared names, or other if nobody did: it probably still holds what
// others want.
func (r *run) holder(other int) int {
	last, _ := r.last.Load().(string)
	for i := range r.workers {
		if isOf(last, workerID(i)) {
			return i
		}
	}
	return other
}

func (r *run) signal(who int, s syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.workers[who].cmd.Process.Signal(s) // of a successor, if it was killed meanwhile: harmless
}
