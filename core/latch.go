package core

// latch lets goroutines wait until something has happened. The mutex of what it belongs to protects it. It
// costs nothing as long as nobody waits.
type latch struct{ ch chan struct{} }

// wait returns a channel that the next open closes.
func (l *latch) wait() <-chan struct{} {
	if l.ch == nil {
		l.ch = make(chan struct{})
	}
	return l.ch
}

// open lets everybody go on who waits.
func (l *latch) open() {
	if l.ch != nil {
		close(l.ch)
		l.ch = nil
	}
}
