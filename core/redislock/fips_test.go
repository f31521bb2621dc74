package redislock_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// In this mode a program that computes a SHA-1 panics. These tests use every script and TLS.
func TestLocksWorkInFIPSOnlyMode(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	const tests = "^(TestTheMinimalACLIsEnoughAndNoMore|TestAnAnswerIsTheSameWhetherACommandWasMergedOrNot|TestGuardRefusesTheLateWrite|" +
		"TestLocksWorkOverTLSWithThoseWhoProveWhoTheyAre|TestWithoutScriptsALeaseIsRenewedLostAndCompleted)$"
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", tests, "-test.count=1", "-test.timeout=2m")
	again.Env = append(os.Environ(), "GODEBUG=fips140=only")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
