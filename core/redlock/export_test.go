package redlock

// Ballots says how many ballots the Store remembers.
func Ballots(s *Store) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ballots)
}
