package servers

import (
	"strings"
	"testing"
)

func TestServersTellTheirVersions(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) *Server{
		"redis":     func(t *testing.T) *Server { t.Helper(); return Redis(t) },
		"memcached": func(t *testing.T) *Server { t.Helper(); return Memcached(t) },
		"zookeeper": func(t *testing.T) *Server { t.Helper(); return ZooKeeper(t) },
		"etcd":      func(t *testing.T) *Server { t.Helper(); return Etcd(t) },
		"postgres":  func(t *testing.T) *Server { t.Helper(); return Postgres(t) },
		"mariadb":   func(t *testing.T) *Server { t.Helper(); return MariaDB(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := start(t).Version()
			t.Log(v)
			if versionPattern.FindString(v) != v || strings.HasPrefix(v, "0") {
				t.Errorf("version %q", v)
			}
		})
	}
}
