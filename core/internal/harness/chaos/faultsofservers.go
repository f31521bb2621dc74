//go:build linux

package chaos

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// onServers are the faults of a server, and of what it keeps.
var onServers = map[string]func(ctx context.Context, r *run, n *node, f Fault){
	"pause":   func(_ context.Context, _ *run, n *node, f Fault) { n.away(f, n.server.Pause, n.server.Resume) },
	"crash":   func(_ context.Context, _ *run, n *node, f Fault) { n.away(f, n.server.Kill, n.server.Restart) },
	"restart": func(_ context.Context, r *run, _ *node, f Fault) { r.restart(f.Node, f.For) },
	"leave": func(_ context.Context, r *run, _ *node, f Fault) {
		r.restart(f.Node, r.ttl+f.For) // for longer than anything it knew can be trusted
	},
	"readonly": func(ctx context.Context, _ *run, n *node, f Fault) { // the replica of nobody: it keeps what it has, and takes no writes
		n.away(f, func() { n.admin.ReplicaOf(ctx, "127.0.0.1", "1") }, func() { n.admin.ReplicaOf(ctx, "NO", "ONE") })
	},
	"busy": func(ctx context.Context, _ *run, n *node, f Fault) {
		const rounds = 60_000_000 // in a second, about; before Redis 7.4, scripts have no clock that goes on
		n.admin.Eval(ctx, "for _ = 1, ARGV[1] do end return 1", nil, int(rounds*f.For.Seconds()))
	},
	"disconnect": func(ctx context.Context, _ *run, n *node, _ Fault) { n.disconnect(ctx) },
	"deafen": func(ctx context.Context, _ *run, n *node, _ Fault) {
		n.admin.Do(ctx, "client", "kill", "type", "pubsub")
	},
	"scripts": func(ctx context.Context, _ *run, n *node, _ Fault) { n.admin.ScriptFlush(ctx) },
	"memory": func(ctx context.Context, _ *run, n *node, f Fault) {
		n.admin.ConfigSet(ctx, "maxmemory", "1")
		time.Sleep(f.For)
		n.admin.ConfigSet(ctx, "maxmemory", "0")
	},
	"failover": func(_ context.Context, r *run, _ *node, f Fault) { r.service.failover(r, f) },
	"move":     func(ctx context.Context, r *run, _ *node, f Fault) { r.service.move(ctx, f) },

	"flush":  func(ctx context.Context, _ *run, n *node, _ Fault) { n.admin.FlushAll(ctx) },
	"delete": func(ctx context.Context, _ *run, n *node, f Fault) { n.admin.Del(ctx, prefix+f.Name) },
	"foreign": func(ctx context.Context, _ *run, n *node, f Fault) {
		n.admin.Set(ctx, prefix+f.Name, "somebody else's", f.For)
		time.Sleep(f.For)
	},
	"expire": func(ctx context.Context, _ *run, n *node, f Fault) {
		n.admin.PExpire(ctx, prefix+f.Name, time.Millisecond)
	},
	"persist": func(ctx context.Context, r *run, n *node, f Fault) { // against renewals, and made good in the end
		for end := time.Now().Add(f.For); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			n.admin.Persist(ctx, prefix+f.Name)
		}
		if n.admin.PTTL(ctx, prefix+f.Name).Val() == -1 { // nobody may be left to renew it
			n.admin.PExpire(ctx, prefix+f.Name, r.ttl)
		}
	},
	"counter": func(ctx context.Context, _ *run, n *node, _ Fault) { n.admin.Del(ctx, counter) },
	"ahead": func(ctx context.Context, _ *run, n *node, _ Fault) {
		n.admin.Set(ctx, counter, time.Now().Add(10*time.Minute).UnixMicro(), 0)
	},
}

// counter is where fences are counted.
const counter = "{" + prefix + "}:v1:fence"

// onServer returns a fault of a server or of its data, nil if there is none.
func (r *run) onServer(ctx context.Context, f Fault) func() {
	switch {
	case f.Kind == "starve":
		return func() { starve(f.For) }
	case slices.Contains(sqls, r.Service) && onServers[f.Kind] == nil:
		return func() { r.service.onDatabase(ctx, f) }
	case len(r.service.nodes) == 0:
		return nil
	}
	return func() { onServers[f.Kind](ctx, r, r.service.nodes[f.Node], f) }
}

// away has a server not be there for a while.
func (n *node) away(f Fault, away, back func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	away()
	time.Sleep(f.For)
	back()
}

// disconnect ends the workers' connections, not the one that watches.
func (n *node) disconnect(ctx context.Context) {
	lines, _ := n.connections(ctx) // a server that is not there has none
	for _, line := range lines {
		var id string
		if _, err := fmt.Sscanf(line, "connection id=%s", &id); err == nil {
			n.admin.ClientKillByFilter(ctx, "id", id)
		}
	}
}

// starve leaves little of the processors to anybody else.
func starve(d time.Duration) {
	end := time.Now().Add(d)
	var greedy sync.WaitGroup
	for range 8 {
		greedy.Go(func() {
			for time.Now().Before(end) { // it is meant to spin
			}
		})
	}
	greedy.Wait()
}

// restart kills a server and starts it again with nothing. Nobody reaches it before what it does is watched.
func (r *run) restart(node int, pause time.Duration) {
	n := r.service.nodes[node]
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, links := range r.proxies {
		r.refuse(links[node], true)
	}
	n.unseen.Lock()
	defer n.unseen.Unlock()
	n.server.Kill()
	<-n.watcher.done // it has read all that the server still said
	killed := now()
	_ = n.watcher.stop()
	n.watcher.commands = append(n.watcher.commands, Command{At: killed, Client: operator, Args: []string{restarted}})
	time.Sleep(pause)
	n.server.Restart()
	next, err := watch(n.server.Addr(), n.watcher)
	if err != nil {
		r.tb.Errorf("MONITOR: %v", err)
		return
	}
	n.watcher = next
	for _, links := range r.proxies {
		r.refuse(links[node], false)
	}
}

// onDatabase does what somebody else may do to a database. What that is told, such as that the server is gone, does not matter.
func (s *service) onDatabase(ctx context.Context, f Fault) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	const others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
	switch f.Kind + " " + s.kind {
	case "end " + Postgres:
		_, _ = s.db.ExecContext(ctx, "SELECT pg_terminate_backend(pid) "+others)
	case "end " + MySQL:
		s.endAll(ctx)
	case "frozen " + Postgres: // one that is at work, if there is any
		var pid int
		if s.db.QueryRowContext(ctx, "SELECT pid "+others+" ORDER BY state = 'active' DESC, random() LIMIT 1").Scan(&pid) == nil {
			_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended
			time.Sleep(f.For)
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	case "rows " + Postgres: // in a long transaction, whose snapshot keeps the server from clearing away what is out of date
		s.within(ctx, f, "SELECT txid_current(), count(*) FROM holdfast_locks", "SELECT FROM holdfast_locks LIMIT 1 FOR UPDATE")
	case "rows " + MySQL:
		s.within(ctx, f, "SELECT name FROM holdfast_locks FOR UPDATE")
	case "rows " + SQLite:
		s.within(ctx, f, "UPDATE holdfast_locks SET turn = turn")
	}
}

// endAll ends all connections to MariaDB but the operator's.
func (s *service) endAll(ctx context.Context) {
	var kills string
	const every = "SELECT GROUP_CONCAT('KILL ', id) FROM information_schema.processlist WHERE id <> CONNECTION_ID()"
	if s.db.QueryRowContext(ctx, every).Scan(&kills) == nil {
		for kill := range strings.SplitSeq(kills, ",") {
			_, _ = s.db.ExecContext(ctx, kill)
		}
	}
}

// within executes statements in one transaction, and pauses after each.
func (s *service) within(ctx context.Context, f Fault, statements ...string) {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range statements {
		_, _ = tx.ExecContext(ctx, statement)
		time.Sleep(f.For)
	}
}
