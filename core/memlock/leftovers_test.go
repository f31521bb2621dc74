package memlock

import "fmt"

// Leftovers lists what the store keeps of names that nobody holds or waits for.
func (s *Store) Leftovers() (left []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.locks {
		left = append(left, "lock of "+name)
	}
	for name, line := range s.lines {
		left = append(left, fmt.Sprintf("%d in line for %s", len(line), name))
	}
	return left
}
