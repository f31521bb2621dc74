package temporalmw_test

import (
	"os"
	"testing"

	"go.temporal.io/sdk/worker"
)

// Without a checksum, the SDK computes an MD5 of the program, which panics in FIPS 140-only mode: see tools/fips.sh.
func TestMain(m *testing.M) {
	worker.SetBinaryChecksum("test")
	os.Exit(m.Run())
}
