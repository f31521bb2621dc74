package redlock

import driver "github.com/holdfast-go/holdfast/core/internal/olddriver"

// Old is a Store on the contract of its nodes.
type Old = queueing

// Over is a Store over nodes on the old contract, on both contracts.
func Over(nodes []driver.Driver, opts ...Option) (*Store, Old) {
	s := newStore(nodes, opts)
	return over(s), Old{s}
}

// Ballots says how many ballots the Store remembers.
func Ballots(s Old) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ballots)
}
