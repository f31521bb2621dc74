package servers

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

const sqlHelperEnv = "HOLDFAST_TEST_SQL_HELPER"

// TestHelperHoldsAnSQLServer is no test: TestSQLServersDieWithAKilledTestBinary runs it in a
// process of its own, and kills that.
func TestHelperHoldsAnSQLServer(t *testing.T) {
	t.Parallel()
	start, ok := sqlServers[os.Getenv(sqlHelperEnv)]
	if !ok {
		t.Skip("runs only inside another test")
	}
	s := start(t)
	_, _ = os.Stdout.WriteString("\npid " + strconv.Itoa(s.PID()) + "\n")
	select {}
}

func TestSQLServersDieWithAKilledTestBinary(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]product{"postgres": postgresProduct(nil), "mariadb": mariadbProduct(nil)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Find(t, p.binary, p.debianPackage)               // here, so that the helper cannot skip unseen
			dir, err := os.MkdirTemp("", "holdfast-orphan-") //nolint:usetesting // the server's account has to enter it
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			if err := os.Chmod(dir, 0o711); err != nil {
				t.Fatal(err)
			}
			pid := killedHelper(t, name, dir)
			wantGone(t, pid)
		})
	}
}

// killedHelper starts a helper, kills it once it has a server, and returns the server's pid.
func killedHelper(t *testing.T, name, dir string) (pid int) {
	t.Helper()
	helper := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperHoldsAnSQLServer$")
	helper.Env = append(os.Environ(), sqlHelperEnv+"="+name, "TMPDIR="+dir)
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if text, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			pid, err = strconv.Atoi(text)
		}
	}
	_ = helper.Process.Kill()
	_ = helper.Wait() // it was killed
	if pid == 0 || err != nil {
		t.Fatalf("the helper started no server: %v\n%s", err, said.String())
	}
	return pid
}
