package faultproxy

import (
	"sync"
	"time"
)

// SetDelay makes every byte arrive that much later, for each direction; zero, the default,
// is no delay. It is latency, not a limit of throughput. It applies to what is read from
// now on; what is under way keeps the delay it began with, and nothing overtakes.
// Connecting is not delayed: the proxy itself accepts.
func (p *Proxy) SetDelay(toServer, toClient time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.toServer, p.toClient = toServer, toClient
}

// DelayEach gives what each connection carries a delay of its own, besides that of SetDelay: what of says for
// the connection's number, counted from 1 since the proxy began. It is asked, once at a time, for each request and
// each answer. So what a client sends on one connection overtakes what it has sent on another. It applies as SetDelay
// does, to connections that are open already too. nil, the default, is none. It must not use the proxy.
func (p *Proxy) DelayEach(of func(n int) (toServer, toClient time.Duration)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delays = of
}

// DropReply loses the reply to the nth request from now, counted over all connections;
// 1 is the next. Further calls add further losses.
func (p *Proxy) DropReply(n int) { p.lose(n, lossNext) }

// CutReply passes the nth request from now on, counted over all connections, and resets its
// connection in place of the reply: the server has executed it, and the client is told that
// the connection broke.
func (p *Proxy) CutReply(n int) { p.lose(n, lossCut) }

// CutRequest resets a connection in place of passing on the nth request from now, counted over
// all connections: the server never gets it.
func (p *Proxy) CutRequest(n int) { p.lose(n, lossRequest) }

func (p *Proxy) lose(n int, fate loss) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost[p.requests+max(n, 1)] = fate
}

// Before has do called right before the nth request from now is passed on, counted over all connections. The request waits for it,
// and so do those behind it on its connection.
func (p *Proxy) Before(n int, do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before[p.requests+max(n, 1)] = do
}

// Requests is how many requests were passed on, or cut, so far, over all connections.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// BlackHole switches a silent partition on or off. While it is on, the proxy accepts
// connections and reads, and passes nothing on, the end of a connection included. When it
// ends, the connections that lost something are reset, since a stream with a hole is
// nothing that TCP would deliver; so are those that began inside it.
func (p *Proxy) BlackHole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blackHole = on
	p.resetLossy()
}

// BlackHoleNew is [Proxy.BlackHole] for the connections that begin while it is on: a client that has
// connections goes on with them, and gets no other.
func (p *Proxy) BlackHoleNew(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newDark = on
	if on {
		return
	}
	for l := range p.links {
		l.begunDark = false
	}
	p.resetLossy()
}

// resetLossy ends the links that have come out of a black hole. p.mu is held.
func (p *Proxy) resetLossy() {
	for l := range p.links {
		if l.lossy && !l.inDark() {
			l.abort()
		}
	}
}

// Reset ends every open connection with a TCP reset, towards the client and towards the
// server. What was under way is lost. New connections are accepted.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.abort()
	}
}

// Refuse makes dials fail with "connection refused", or succeed again. Open connections
// go on.
func (p *Proxy) Refuse(on bool) {
	if on {
		p.stopAccepting()
	} else {
		p.startAccepting()
	}
}

// Hold keeps back everything that clients send, until release is called. What is held
// arrives then, in order, even if the client has closed its connection since: the delayed
// request of a caller that has long given up. Replies pass. Several holds add up; release
// may be called more than once.
func (p *Proxy) Hold() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holds == 0 {
		p.gate = make(chan struct{})
	}
	p.holds++
	gate := p.gate
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.gate != gate || p.holds == 0 {
			return // Heal has released this hold
		}
		if p.holds--; p.holds == 0 {
			close(p.gate)
		}
	})
}

// Heal ends every fault: no delay, no losses to come, no black hole, nothing held or
// refused.
func (p *Proxy) Heal() {
	p.SetDelay(0, 0)
	p.DelayEach(nil)
	p.BlackHole(false)
	p.BlackHoleNew(false)
	p.mu.Lock()
	clear(p.lost)
	clear(p.before)
	if p.holds > 0 {
		p.holds = 0
		close(p.gate)
	}
	p.mu.Unlock()
	p.Refuse(false)
}
