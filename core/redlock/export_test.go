package redlock

// Ballots says how many ballots the Store remembers.
func Ballots(s *Store) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ballots)
}

// Behind says of how many names the Store remembers ballots that are over.
func Behind(s *Store) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.behind)
}

// MinPrune is how much the Store remembers before it looks for what is of no use any more.
const MinPrune = minPrune
