package sqllock_test

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func TestMain(m *testing.M) {
	backendtest.AtOnce()
	os.Exit(m.Run())
}
