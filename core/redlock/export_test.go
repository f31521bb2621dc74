package redlock

// Ballots says how many ballots the Store remembers.
func Ballots(s *Store) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ballots)
}

// Behind says how many ballots that are over the Store remembers, and of how many names.
func Behind(s *Store) (ballots, names int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.behind {
		ballots += len(of.ballots)
	}
	return ballots, len(s.behind)
}

// MinPrune is how much the Store remembers before it looks for what is of no use any more.
const MinPrune = minPrune
