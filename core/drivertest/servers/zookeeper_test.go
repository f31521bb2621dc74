package servers

import (
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// word is ZooKeeper's answer to a four-letter word.
func word(t *testing.T, addr, word string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, soon)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(soon))
	if _, err := io.WriteString(conn, word); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func TestZooKeeperAnswersAndComesBack(t *testing.T) {
	t.Parallel()
	s := ZooKeeper(t)
	if answer := word(t, s.Addr(), "ruok"); answer != "imok" {
		t.Errorf("answer %q", answer)
	}
	tick := strconv.FormatInt(ZooKeeperTick.Milliseconds(), 10)
	if config := word(t, s.Addr(), "conf"); !strings.Contains(config, "tickTime="+tick) {
		t.Errorf("configuration:\n%s", config)
	}
	s.Kill()
	wantRefused(t, s.Addr())
	s.Restart()
	if answer := word(t, s.Addr(), "ruok"); answer != "imok" {
		t.Errorf("answer %q after the restart", answer)
	}
}

func TestZooKeeperOnATakenPortIsNotTakenForReady(t *testing.T) {
	t.Parallel()
	other := ZooKeeper(t)
	p := zooKeeperProduct(t)
	s := &Server{tb: t, product: p, path: p.find(t), root: t.TempDir(), port: other.port}
	if err := s.start(); !errors.Is(err, errPortTaken) {
		t.Errorf("start: %v; want %v", err, errPortTaken)
	}
}

func TestAnEnsembleOfThreeGoesOnWithTwo(t *testing.T) {
	t.Parallel()
	members := ZooKeeperEnsemble(t, nil)
	for i, gone := range members {
		gone.Kill()
		for _, m := range []*Server{members[(i+1)%3], members[(i+2)%3]} {
			await(t, soon, "it serves", func() error { return zooKeeperServes(m.Addr()) })
		}
		gone.Restart()
	}
}
