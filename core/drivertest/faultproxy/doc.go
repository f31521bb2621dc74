// Package faultproxy stands between a client and a server in a test and breaks the
// network between them: it delays, loses, holds back, resets and refuses.
//
//	p := faultproxy.New(t, server.Addr())
//	client := dial(p.Addr())
//	p.DropReply(1) // the server executes the next request; the client never hears of it
//
// The faults:
//
//	SetDelay(toServer, toClient)  latency for each direction; order is kept
//	DelayEach(of)                 latency that each connection has for itself
//	DropReply(n)                  the reply to the nth request from now is lost
//	CutReply(n)                   the nth request from now arrives; then its connection is reset
//	CutRequest(n)                 the connection is reset in place of the nth request from now
//	BlackHole(on)                 a silent partition: bytes are read and go nowhere
//	BlackHoleNew(on)              the same for connections that begin now; open ones go on
//	Reset()                       every connection ends with a TCP reset, at both ends
//	Refuse(on)                    new connections are refused; open ones go on
//	Hold() release                requests wait in the proxy, and arrive later
//	Heal()                        back to a clean network
//
// Faults add up, and may be switched from any goroutine while traffic flows.
//
// # Granularity
//
// The proxy does not parse what it carries. A request is what one read from the client
// returns: a command, or a pipeline written in one go. The reply to it is whatever the
// server sends on that connection after the request was passed on and before the next
// request on the same connection. So a lost reply is exact for a client that waits for
// each answer, and is "the next thing the server says" for a client that pipelines.
// Requests that a client sends by itself when it connects (a handshake) are counted too:
// use the connection once before arming DropReply.
//
// Where the target cannot be dialled, the client, which is connected already, is reset.
//
// A fault acts on bytes that the proxy has not passed on yet. What was already handed to
// the kernel still arrives.
//
// It is tested on Unix systems only: the tests name their errors.
package faultproxy
