//go:build linux

package weather

import "slices"

const (
	stormOfPostgres  = "core/sqllock TestAStormOnPostgresKeepsOneHolderAtATime"
	stormOfMariaDB   = "core/sqllock TestAStormOnMariaDBKeepsOneHolderAtATime"
	stormOfEtcd      = "core/etcdlock TestAStormKeepsOneHolderAtATime"
	stormOfNATS      = "core/natslock TestAStormKeepsOneHolderAtATime"
	stormOfZooKeeper = "core/zklock TestAStormKeepsOneHolderAtATime"
)

// mutantsOfStorms break the backends that have no MONITOR to be read. Each has a storm of core/internal/backendtest.
func mutantsOfStorms() []Mutant {
	return slices.Concat(mutantsOfSQL(), mutantsOfEtcd(), mutantsOfNATS(), mutantsOfZooKeeper())
}

func mutantsOfEtcd() []Mutant {
	return []Mutant{
		{
			Name: "etcd: a name is taken, whoever has taken it meanwhile",
			File: "core/etcdlock/commands.go",
			Old:  "conditions := []clientv3.Cmp{unchanged(s.lockKey(c.Name), now.lock)}\n\tswitch",
			New:  "conditions := []clientv3.Cmp{}\n\tswitch",
			Test: stormOfEtcd,
		},
		{
			Name: "etcd: nobody counts the holders",
			File: "core/etcdlock/state.go",
			Old:  "!c.Exclusive() && len(n.holders) < n.allows(c)",
			New:  "!c.Exclusive()",
			Test: stormOfEtcd,
		},
		{
			Name: "etcd: a renewal prolongs nothing",
			File: "core/etcdlock/renew.go",
			Old:  "errs[i] = s.extend(ctx, c, now)",
			New:  "errs[i] = nil",
			Test: stormOfEtcd,
		},
		{
			Name: "etcd: an only owner comes in beside those who have come meanwhile",
			File: "core/etcdlock/commands.go",
			Old:  "conditions = append(conditions, absent(s.heldPrefix(c.Name)))",
			New:  "_ = s.heldPrefix",
			Test: stormOfEtcd,
		},
	}
}

func mutantsOfNATS() []Mutant {
	return []Mutant{
		{
			Name: "NATS: a key is written over, whatever has become of it",
			File: "core/natslock/call.go",
			Old:  "\tm.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(w.after, 10))\n",
			New:  "\tif false {\n\t\tm.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(w.after, 10))\n\t}\n",
			Test: stormOfNATS,
		},
		{
			Name: "NATS: owners are not told apart",
			File: "core/natslock/key.go",
			Old:  "\tsum := sha256.Sum256([]byte(secret))\n",
			New:  "\tsum := sha256.Sum256([]byte(secret[:0]))\n",
			Test: stormOfNATS,
		},
		{
			Name: "NATS: who is refused has written",
			File: "core/natslock/call.go",
			Old:  "\tcase ack.Error == nil:\n",
			New:  "\tcase ack.Error == nil || ack.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:\n",
			Test: stormOfNATS,
		},
	}
}

func mutantsOfZooKeeper() []Mutant {
	return []Mutant{
		{
			Name: "ZooKeeper: a new znode owns the name, whoever is before it",
			File: "core/zklock/ask.go",
			Old:  "case n.owned || turn(queue, n.znode):",
			New:  "case n.znode != \"\":",
			Test: stormOfZooKeeper,
		},
		{
			Name: "ZooKeeper: nobody counts those before an entry",
			File: "core/zklock/queue.go",
			Old:  "blocker(queue, at) == \"\" && !crowded(queue, at)\n",
			New:  "blocker(queue, at) == \"\"\n",
			Test: stormOfZooKeeper,
		},
		{
			Name: "ZooKeeper: a lease lasts longer than its session",
			File: "core/zklock/ask.go",
			Old:  "return timeout * 2 / 5",
			New:  "return timeout * 2",
			Test: "core/zklock TestInACutLongerThanTheSessionTheContextEndsBeforeAnotherGetsIn",
		},
		{
			Name: "ZooKeeper: who waits looks only at the one before it",
			File: "core/zklock/queue.go",
			Old:  "for i := at - 1; i >= 0; i-- {",
			New:  "for i := at - 1; i >= max(0, at-1); i-- {",
			Test: stormOfZooKeeper,
		},
		{
			Name: "ZooKeeper: a hand-off that is gone is still there",
			File: "core/zklock/handoff.go",
			Old:  "\tif err != nil || stat == nil {\n\t\treturn nil, err\n",
			New:  "\tif err != nil || stat == nil {\n\t\treturn new(driver.Held), err\n",
			Test: "core/zklock TestWhoFindsAHandoffGoneLooksWhoHasTakenItOver",
		},
		{
			Name: "ZooKeeper: a fence is that of the znode's creation",
			File: "core/zklock/ask.go",
			Old:  "stat.Mzxid < t.changed &&",
			New:  "false &&",
			Test: "core/zklock TestAFenceIsLaterThanThatOfWhoCameBetween",
		},
	}
}
