package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// backends are the columns, in their order, those of which nothing is known too.
var backends = []string{
	"memory", "Redis", "Redis by Sentinel", "Redis Cluster", "Redis without scripts", "redlock",
	"PostgreSQL", "PgBouncer", "MariaDB", "MySQL", "SQLite", "ZooKeeper", "etcd", "NATS", "memcached",
}

// serverRow is the head of the row that is not compared.
const serverRow = "server"

// table has a row for each promise and a column for each backend.
type table [][]string

func tableOf(records map[string]record) (table, error) {
	for _, backend := range slices.Sorted(maps.Keys(records)) {
		if !slices.Contains(backends, backend) {
			return nil, fmt.Errorf("no column for %q", backend)
		}
	}
	head := append([]string{""}, backends...)
	servers := []string{serverRow}
	for _, backend := range backends {
		server := notRun
		if r, ok := records[backend]; ok {
			server = r.Server
		}
		servers = append(servers, server)
	}
	t := table{head, servers}
	for _, promise := range promises(records) {
		row := []string{promise}
		for _, backend := range backends {
			row = append(row, cell(records[backend], promise))
		}
		t = append(t, row)
	}
	return t, nil
}

// promises are the rows, in the order of the suite.
func promises(records map[string]record) (all []string) {
	for _, backend := range backends {
		for _, c := range records[backend].Cases {
			if !slices.Contains(all, c.Promise) {
				all = append(all, c.Promise)
			}
		}
	}
	return all
}

// cell is what a record says of a promise.
func cell(r record, promise string) string {
	count := make(map[string]int)
	total := 0
	for _, c := range r.Cases {
		if c.Promise == promise {
			count[c.Outcome]++
			total++
		}
	}
	switch {
	case count[failed] > 0:
		return fmt.Sprintf("**no** (%d of %d failed)", count[failed], total)
	case count[passed] > 0 && count[passed] == total:
		return fmt.Sprintf("yes (%d)", total)
	case count[passed] > 0:
		return fmt.Sprintf("yes (%d of %d)", count[passed], total)
	case count[lacking] > 0:
		return lacking
	case count[pointless] > 0:
		return pointless
	default:
		return notRun
	}
}

func (t table) String() string {
	var b strings.Builder
	for i, row := range t {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return b.String()
}
