package sqllock_test

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func TestMain(m *testing.M) {
	backendtest.AtOnce(4)
	os.Exit(m.Run())
}
