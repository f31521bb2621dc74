package redlock

// Ballots says how many ballots the Store remembers.
func Ballots(st *Store) int {
	s := st.Inspector.(*store)
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ballots)
}
