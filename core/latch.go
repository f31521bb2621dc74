package core

// latch lets goroutines wait until something has happened. The mutex of the struct that it belongs
// to protects it. It costs nothing as long as nobody waits.
type latch struct{ ch chan struct{} }

// wait returns a channel that the next open closes. The caller holds the mutex.
func (l *latch) wait() <-chan struct{} {
	if l.ch == nil {
		l.ch = make(chan struct{})
	}
	return l.ch
}

// open lets all waiters go on. The caller holds the mutex.
func (l *latch) open() {
	if l.ch != nil {
		close(l.ch)
		l.ch = nil
	}
}
