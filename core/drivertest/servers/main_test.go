package servers

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the package if a goroutine that waits for a server is left after all tests: then the server is left too.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
