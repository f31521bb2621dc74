//go:build linux

package weather

const sqlStatements = "core/sqllock/statements.go"

// mutantsOfSQL break core/sqllock.
func mutantsOfSQL() []Mutant {
	return []Mutant{
		{
			Name: "a row is written over, whatever has become of it",
			File: sqlStatements,
			Old:  "asRead = `token = $9 AND fence = $10 AND expires = $11 AND state = $12 AND turn = $13`",
			New:  "asRead = `(token <> $9 OR fence <> $10 OR expires <> $11 OR state <> $12 OR turn <> $13 OR true)`",
			Test: stormOfPostgres,
		},
		{
			Name: "MariaDB: a row is written over, whatever has become of it",
			File: sqlStatements,
			Old:  "asRead = `token = $9 AND fence = $10 AND expires = $11 AND state = $12 AND turn = $13`",
			New:  "asRead = `(token <> $9 OR fence <> $10 OR expires <> $11 OR state <> $12 OR turn <> $13 OR true)`",
			Test: stormOfMariaDB,
		},
		{
			Name: "a name is taken, whoever has its row",
			File: sqlStatements,
			Old:  "WHERE l.state = '' AND (l.token = excluded.token OR l.expires <= excluded.expires - INT($4))",
			New:  "WHERE l.state = ''",
			Test: stormOfPostgres,
		},
		{
			Name: "a reader joins a writer",
			File: "core/sqllock/row.go",
			Old:  "case !r.together() || r.token != kind(c):",
			New:  "case !c.Shared() && (!r.together() || r.token != kind(c)):",
			Test: stormOfPostgres,
		},
		{
			Name: "a row's fence is given again",
			File: "core/sqllock/decide.go",
			Old:  "first := max(r.fence+1, r.now)",
			New:  "first := max(r.fence, 1)",
			Test: stormOfPostgres,
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
			Old:  "time.AfterFunc(Stuck, landed)",
			New:  "time.AfterFunc(time.Hour, landed)",
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
