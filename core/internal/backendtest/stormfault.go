package backendtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// Fault is something that a [Storm] breaks now and then.
type Fault struct {
	Name string

	// Strike breaks it, pauses, and mends it. pause lasts for a moment, at most for the time that it is given.
	Strike func(pause func(most time.Duration))
}

// ServerFaults are those of any server. They happen to one server at a time.
func ServerFaults(all ...*servers.Server) []Fault { return append(Kills(all...), Freezes(all...)...) }

// Kills are of servers that start again with what they have on their disks.
func Kills(all ...*servers.Server) []Fault {
	return ofEach(all, "is killed", 300*time.Millisecond, (*servers.Server).Kill, (*servers.Server).Restart)
}

// Freezes are of servers that stand still for a while.
func Freezes(all ...*servers.Server) []Fault {
	return ofEach(all, "stands still", 1500*time.Millisecond, (*servers.Server).Pause, (*servers.Server).Resume)
}

func ofEach(all []*servers.Server, what string, most time.Duration, breaks, mends func(*servers.Server)) (faults []Fault) {
	for i, s := range all {
		faults = append(faults, Fault{fmt.Sprintf("server %d %s", i, what), func(pause func(time.Duration)) {
			breaks(s)
			pause(most)
			mends(s)
		}})
	}
	return faults
}

// Links are those of one process to each of some servers.
func Links(t testing.TB, all []*servers.Server) []*faultproxy.Proxy {
	t.Helper()
	links := make([]*faultproxy.Proxy, len(all))
	for i, s := range all {
		links[i] = faultproxy.New(t, s.Addr())
	}
	return links
}

// Addrs are the addresses of servers, or of links.
func Addrs[T interface{ Addr() string }](all []T) []string {
	addrs := make([]string, len(all))
	for i, one := range all {
		addrs[i] = one.Addr()
	}
	return addrs
}

// linkFaults are those of one link, or of all links, of each process.
func linkFaults(all [][]*faultproxy.Proxy) (faults []Fault) {
	for i, links := range all {
		if len(links) == 0 {
			continue
		}
		faults = append(faults, faultsOf(fmt.Sprint("process ", i), links)...)
		for j := range links {
			if len(links) > 1 {
				faults = append(faults, faultsOf(fmt.Sprintf("process %d, link %d", i, j), links[j:j+1])...)
			}
		}
	}
	return faults
}

func faultsOf(where string, links []*faultproxy.Proxy) []Fault {
	each := func(breaks func(p *faultproxy.Proxy)) {
		for _, p := range links {
			breaks(p)
		}
	}
	during := func(what string, most time.Duration, breaks func(p *faultproxy.Proxy)) Fault {
		return Fault{where + ": " + what, func(pause func(time.Duration)) {
			defer heal(links)
			each(breaks)
			pause(most)
		}}
	}
	lossy := func(what string, most time.Duration, breaks func(p *faultproxy.Proxy)) Fault {
		f := during(what, most, breaks)
		strike := f.Strike
		f.Strike = func(pause func(time.Duration)) {
			strike(pause)
			each((*faultproxy.Proxy).Reset) // a stream with a hole is nothing that TCP would deliver
		}
		return f
	}
	const many = 1 << 12
	return []Fault{
		during("connections are reset", 50*time.Millisecond, (*faultproxy.Proxy).Reset),
		during("nothing arrives", 2*time.Second, func(p *faultproxy.Proxy) { p.BlackHole(true) }),
		lossy("no answer arrives", 2*time.Second, func(p *faultproxy.Proxy) { p.DropReplies(many) }),
		lossy("an answer is lost", 300*time.Millisecond, func(p *faultproxy.Proxy) { p.DropReply(1) }),
		during("an answer is cut off", 300*time.Millisecond, func(p *faultproxy.Proxy) { p.CutReply(1) }),
		during("a request is cut off", 300*time.Millisecond, func(p *faultproxy.Proxy) { p.CutRequest(1) }),
		during("new connections go nowhere", time.Second, func(p *faultproxy.Proxy) { p.BlackHoleNew(true) }),
		during("connections are refused", 2*time.Second, func(p *faultproxy.Proxy) { p.Refuse(true); p.Reset() }),
		during("all is slow", time.Second, func(p *faultproxy.Proxy) { p.SetDelay(100*time.Millisecond, 100*time.Millisecond) }),
		during("each connection has a speed of its own", time.Second, func(p *faultproxy.Proxy) {
			p.DelayEach(func(n int) (toServer, toClient time.Duration) { return time.Duration(n%7) * 60 * time.Millisecond, 0 })
		}),
		during("requests come late", time.Second, func(p *faultproxy.Proxy) { p.Hold() }),
	}
}

func heal(links []*faultproxy.Proxy) {
	for _, p := range links {
		p.Heal()
	}
}

// rage has one fault after the other happen, until ctx ends, with calm between them.
func (w *weather) rage(ctx context.Context, random *rand.Rand, calm time.Duration, faults []Fault) {
	pause := func(most time.Duration) {
		select {
		case <-time.After(50*time.Millisecond + time.Duration(random.Int64N(int64(most)))):
		case <-ctx.Done():
		}
	}
	for len(faults) > 0 {
		pause(calm)
		if ctx.Err() != nil {
			return
		}
		f := faults[random.IntN(len(faults))]
		began := time.Now()
		f.Strike(pause)
		w.struck(f.Name, began)
	}
}
