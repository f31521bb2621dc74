package servers

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails the package if a goroutine that waits for a server is left after all
// tests: then the server is left too.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leftover(); left != "" && code == 0 {
		fmt.Fprintf(os.Stderr, "goroutines left behind:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leftover is the stack of a goroutine started by this package, if one stays.
func leftover() string {
	var left string
	for range 100 {
		left = ""
		buf := make([]byte, 1<<20)
		for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(stack, "drivertest/servers") && !strings.Contains(stack, "TestMain") {
				left = stack
			}
		}
		if left == "" {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	return left
}
