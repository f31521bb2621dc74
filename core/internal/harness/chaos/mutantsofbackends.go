//go:build linux

package chaos

const sqlStatements = "core/sqllock/statements.go"

func mutantsOfSQL() []Mutant {
	return []Mutant{
		{
			Name: "a row is written over, whatever has become of it",
			File: sqlStatements,
			Old:  "asRead = `token = $9 AND fence = $10 AND expires = $11 AND state = $12 AND turn = $13`",
			New:  "asRead = `(token <> $9 OR fence <> $10 OR expires <> $11 OR state <> $12 OR turn <> $13 OR true)`",
			Red:  "trust", Only: "none", Service: Postgres,
		},
		{
			Name: "MariaDB: a row is written over, whatever has become of it",
			File: sqlStatements,
			Old:  "asRead = `token = $9 AND fence = $10 AND expires = $11 AND state = $12 AND turn = $13`",
			New:  "asRead = `(token <> $9 OR fence <> $10 OR expires <> $11 OR state <> $12 OR turn <> $13 OR true)`",
			Red:  "trust", Only: "none", Service: MySQL,
		},
		{
			Name: "a name is taken, whoever has its row",
			File: sqlStatements,
			Old:  "WHERE l.state = '' AND (l.token = excluded.token OR l.expires <= excluded.expires - INT($4))",
			New:  "WHERE l.state = ''",
			Red:  "trust", Only: "none", Service: Postgres,
		},
		{
			Name: "a reader joins a writer",
			File: "core/sqllock/row.go",
			Old:  "case !r.together() || r.token != kind(c):",
			New:  "case !c.Shared() && (!r.together() || r.token != kind(c)):",
			Red:  "sharing", Only: "none", Service: Postgres,
		},
		{
			Name: "a row's fence is given again",
			File: "core/sqllock/decide.go",
			Old:  "first := max(r.fence+1, r.now)",
			New:  "first := max(r.fence, 1)",
			Red:  "order", Only: "", Service: Postgres,
		},
		{
			Name: "what was rolled back counts as answered",
			File: "core/sqllock/send.go",
			Old:  "\tif a.begin != nil {\n",
			New:  "\tif false {\n",
			Test: "core/sqllock TestAGrantThatWasRolledBackIsNone",
		},
		{
			Name: "a statement that waits for a row holds up all claims",
			File: "core/internal/share/share.go",
			Old:  "\tif len(s.waiting) > 0 {\n\t\ts.era++",
			New:  "\tif false {\n\t\ts.era++",
			Test: "core/sqllock TestClaimsDoNotWaitForOthersWhoseRowsAreLocked",
		},
		{
			Name: "the row of a name that was held for days is thrown away",
			File: sqlStatements,
			Old:  "turn = 0, fence = CASE WHEN fence < NOW THEN NOW ELSE fence END",
			New:  "turn = 0",
			Test: "core/sqllock TestANameThatWasHeldForDaysKeepsItsRow",
		},
		{
			Name: "a later turn's check leaves the earlier one as it is",
			File: "core/sqllock/held.go",
			Old:  "SET turn = CASE WHEN turn < 0 THEN -$2 ELSE turn END",
			New:  "SET turn = CASE WHEN turn > 0 THEN $2 ELSE turn END",
			Test: "core/sqllock TestAnEarlierTurnDoesNotCommitAfterALaterOne",
		},
		{
			Name: "a waiter writes an earlier turn back",
			File: sqlStatements,
			Old:  " AND state = $12 AND turn = $13`",
			New:  " AND state = $12 AND (turn = $13 OR true)`",
			Test: "core/sqllock TestAnEarlierTurnDoesNotCommitAfterALaterOne",
		},
		{
			Name: "a function is whatever the search path has",
			File: sqlStatements,
			Old:  "pg_catalog.to_jsonb(ends)",
			New:  "to_jsonb(ends)",
			Test: "core/sqllock TestNobodysFunctionRunsAsTheUserOfTheLocks",
		},
	}
}

func mutantsOfServices() []Mutant {
	return []Mutant{
		{
			Name: "etcd: a name is taken, whoever has taken it meanwhile",
			File: "core/etcdlock/commands.go",
			Old:  "conditions := []clientv3.Cmp{unchanged(s.lockKey(c.Name), now.lock)}\n\tswitch",
			New:  "conditions := []clientv3.Cmp{}\n\tswitch",
			Red:  "trust", Only: "none", Service: Etcd,
		},
		{
			Name: "etcd: nobody counts the holders",
			File: "core/etcdlock/state.go",
			Old:  "!c.Exclusive() && len(n.holders) < n.allows(c)",
			New:  "!c.Exclusive()",
			Red:  "sharing", Only: "none", Service: Etcd,
		},
		{
			Name: "etcd: a renewal prolongs nothing",
			File: "core/etcdlock/renew.go",
			Old:  "errs[i] = s.extend(ctx, c, now)",
			New:  "errs[i] = nil",
			Red:  "trust", Only: "none", Service: Etcd,
		},
		{
			Name: "etcd: an only owner comes in beside those who have come meanwhile",
			File: "core/etcdlock/commands.go",
			Old:  "conditions = append(conditions, absent(s.heldPrefix(c.Name)))",
			New:  "_ = s.heldPrefix",
			Red:  "sharing", Only: "none", Service: Etcd,
		},
		{
			Name: "NATS: a key is written over, whatever has become of it",
			File: "core/natslock/call.go",
			Old:  "\tm.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(w.after, 10))\n",
			New:  "\tif false {\n\t\tm.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(w.after, 10))\n\t}\n",
			Red:  "trust", Only: "none", Service: NATS,
		},
		{
			Name: "NATS: owners are not told apart",
			File: "core/natslock/key.go",
			Old:  "\tsum := sha256.Sum256([]byte(secret))\n",
			New:  "\tsum := sha256.Sum256([]byte(secret[:0]))\n",
			Red:  "trust", Only: "none", Service: NATS,
		},
		{
			Name: "ZooKeeper: a silent server is asked without end",
			File: "core/zklock/call.go",
			Old:  "\tif a.Load() < mostAbandoned {\n",
			New:  "\tif true {\n",
			Test: "core/zklock TestASilentServerIsNotAskedWithoutEnd",
		},
		{
			Name: "NATS: what a read has missed is lost",
			File: "core/natslock/renew.go",
			Old:  "\tsure := false\n",
			New:  "\tsure := !s.clustered()\n",
			Test: "core/natslock TestAKeyThatAReadHasMissedIsNotGone",
		},
		{
			Name: "NATS: who is refused has written",
			File: "core/natslock/call.go",
			Old:  "\tcase ack.Error == nil:\n",
			New:  "\tcase ack.Error == nil || ack.Error.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:\n",
			Red:  "trust", Only: "none", Service: NATS,
		},
		{
			Name: "ZooKeeper: a new znode owns the name, whoever is before it",
			File: "core/zklock/ask.go",
			Old:  "case n.owned || turn(queue, n.znode):",
			New:  "case n.znode != \"\":",
			Red:  "trust", Only: "none", Service: ZooKeeper,
		},
		{
			Name: "ZooKeeper: nobody counts those before an entry",
			File: "core/zklock/queue.go",
			Old:  "blocker(queue, at) == \"\" && !crowded(queue, at)\n",
			New:  "blocker(queue, at) == \"\"\n",
			Red:  "sharing", Only: "none", Service: ZooKeeper,
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
			Red:  "sharing", Only: "none", Service: ZooKeeper,
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
		{
			Name: "ZooKeeper: a server that says nothing is waited for",
			File: "core/zklock/session.go",
			Old:  "\t\tt = l.patience\n",
			New:  "",
			Test: "core/zklock TestAServerThatSaysNothingIsLeft",
		},
	}
}
