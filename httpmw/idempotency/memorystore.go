package idempotency

import (
	"context"
	"sync"
	"time"
)

// MemoryStore is an [Store] in memory, for tests and single processes. The zero value is
// ready. It forgets each answer when its window is over. It is not limited otherwise.
type MemoryStore struct {
	mu   sync.Mutex // protects the field below
	kept map[string][]byte
}

var _ Store = (*MemoryStore)(nil)

// Load implements [Store].
func (m *MemoryStore) Load(ctx context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept[key], ctx.Err()
}

// Save implements [Store].
func (m *MemoryStore) Save(ctx context.Context, key string, answer []byte, window time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = make(map[string][]byte)
	}
	if m.kept[key] == nil {
		m.kept[key] = answer
		time.AfterFunc(window, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.kept, key)
		})
	}
	return ctx.Err()
}
