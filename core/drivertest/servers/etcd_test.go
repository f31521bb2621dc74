package servers

import (
	"errors"
	"strings"
	"testing"
)

func TestEtcdAnswersAndComesBack(t *testing.T) {
	t.Parallel()
	s := Etcd(t)
	wantHealth(t, s)
	s.Kill()
	wantRefused(t, s.Addr())
	s.Restart()
	wantHealth(t, s)
}

func wantHealth(t *testing.T, s *Server) {
	t.Helper()
	if answer, err := askLine(s.Addr(), "GET /health HTTP/1.0\r\n\r\n"); err != nil || !strings.Contains(answer, " 200 ") {
		t.Errorf("answer %q, %v", answer, err)
	}
}

func TestAnEtcdOfThreeMembersGoesOnWithTwo(t *testing.T) {
	t.Parallel()
	members := EtcdCluster(t)
	for i, gone := range members {
		gone.Kill()
		others := []*Server{members[(i+1)%3], members[(i+2)%3]}
		for _, m := range others {
			await(t, soon, "a leader", func() error { return etcdHealth(m.Addr()) })
		}
		gone.Restart()
		wantHealth(t, gone)
	}
}

func TestEtcdOnATakenPortIsNotTakenForReady(t *testing.T) {
	t.Parallel()
	other := Etcd(t)
	p := etcdProduct(nil)
	s := &Server{tb: t, product: p, path: p.find(t), root: t.TempDir(), port: other.port}
	if err := s.start(); !errors.Is(err, errPortTaken) {
		t.Errorf("start: %v; want %v", err, errPortTaken)
	}
}
