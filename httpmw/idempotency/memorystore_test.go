package idempotency_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/httpmw/idempotency"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

func TestMemoryStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, new(idempotency.MemoryStore))
}
