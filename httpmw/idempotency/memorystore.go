package idempotency

import (
	"context"
	"sync"
	"time"
)

// MemoryStore is an [Store] in memory, for tests and single processes. The zero value is
// ready. It forgets what is over when something is saved. It is not limited otherwise.
type MemoryStore struct {
	mu    sync.Mutex // protects the fields below
	kept  map[string]memoryRecord
	sweep time.Time // when to look for what is over
}

type memoryRecord struct {
	answer []byte
	until  time.Time
}

var _ Store = (*MemoryStore)(nil)

// Load implements [Store].
func (m *MemoryStore) Load(ctx context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.kept[key]; ok && time.Now().Before(r.until) {
		return r.answer, ctx.Err()
	}
	return nil, ctx.Err()
}

// Save implements [Store].
func (m *MemoryStore) Save(ctx context.Context, key string, answer []byte, window time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.kept == nil {
		m.kept = make(map[string]memoryRecord)
	}
	if now.After(m.sweep) {
		for k, r := range m.kept {
			if now.After(r.until) {
				delete(m.kept, k)
			}
		}
		m.sweep = now.Add(time.Minute)
	}
	if r, ok := m.kept[key]; !ok || !now.Before(r.until) {
		m.kept[key] = memoryRecord{answer, now.Add(window)}
	}
	return ctx.Err()
}
