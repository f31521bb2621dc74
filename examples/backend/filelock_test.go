//go:build unix

package filelock_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	filelock "github.com/holdfast-go/holdfast/examples/backend"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		t.Helper()
		path := t.TempDir()
		file := func(name string) string {
			sum := sha256.Sum256([]byte(name))
			return filepath.Join(path, hex.EncodeToString(sum[:]))
		}
		return drivertest.Config{
			Driver: func() driver.Driver { return filelock.New(path) },
			Delete: func(name string) { _ = os.Remove(file(name)) }, // it may be gone
			Names:  1000,                                            // each is four files that are opened, locked and closed
			Leftovers: func() (left []string) {
				files, err := os.ReadDir(path)
				if err != nil {
					t.Error(err)
				}
				for _, f := range files {
					if f.Name() != "lock" {
						left = append(left, f.Name())
					}
				}
				return left
			},
			Unreachable: func() driver.Driver { return filelock.New(filepath.Join(path, "nowhere")) },
		}
	})
}
