// Package backends measures the backends beside each other, each at a real server of its own
// that it starts:
//
//	go test -count=1 . -args -figures
//
// It is a test, so that servers are started and stopped as in all others. Without -figures it
// only proves that everything runs. Latencies are measured on straight connections; what goes
// over the wire is counted by a proxy that sits in between, as requests: what a client writes in
// one go, whatever commands it has. So a request is a round trip, unless the client sends without
// waiting.
package backends
