package redlock

// Votes says how many votes the Store remembers.
func Votes(s *Store) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.votes)
}

// Behind says how many votes that are over the Store remembers, and of how many names.
func Behind(s *Store) (votes, names int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.behind {
		votes += len(of.votes)
	}
	return votes, len(s.behind)
}

// MinPrune is how much the Store remembers before it looks for what is of no use any more.
const MinPrune = minPrune
