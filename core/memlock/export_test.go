package memlock

import "fmt"

// Leftovers lists the names that the Store still knows.
func (s *Store) Leftovers() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, r := range s.names {
		all = append(all, fmt.Sprintf("%s: %d holders, %d in the queue", name, len(r.holders), len(r.queue)))
	}
	return all
}
