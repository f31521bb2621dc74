package sqllock

import (
	"fmt"
	"strconv"
	"strings"
)

// statements are all that a Store sends. Each is one transaction by itself, so no connection
// is kept from one to the next, and nobody who stops in between keeps a row locked.
//
// Each of them may have to wait for a row. What it took for the time is then a little in the
// past: a lease that it sets ends earlier, and one that has ended since is not seen as over.
// Nobody can have prolonged or taken it without having had the row.
type statements struct {
	take          statement // name, token, label, TTL, number of fences, 1 for one and -1 for more; see grantOf; without text where a refusal would be a write
	claim         statement // take, and the state as it was, the new head, the new state, when the entry is dead; without text where nobody is told
	end           statement // name, token, token that it leaves, for how long
	complete      statement // end, and marker, its label, its window; answers with the head; without text where there is none
	takeMany      statement // JSON of many; without text where there is none
	endMany       statement // as takeMany
	renew         statement // name, token, TTL
	renewMany     statement // JSON of many; without text where there is none
	renewTogether statement // as renewMany, for holders that share a name
	read          statement // name, marker
	swap          statement // the new row; token, fence, expires, state, turn as read
	queue         statement // name, the new head, the new state, the state as read, token that must not be the owner; PostgreSQL's says whether the name is free; without text in SQLite
	swapMark      statement // swap, and marker, its label, its window
	create        statement // the new row
	list          statement // the first name, one that is left out, the name before which it ends, how many
	marks         statement // as list
	unmark        statement // marker
	idle          statement // the names after this one, how long is out of use, how many of them to look at
	forget        statement // a name, how long is out of use, more names; pageSize in all
}

func (d Dialect) statements(table string) statements {
	of := func(template string) statement { return d.statement(template, table) }
	s := statements{
		end: of(end), read: of(read), swap: of(swap), create: of(create + ` ON CONFLICT (name) DO NOTHING`), renew: of(renew),
		list: of(list + `token <> ''` + inPages), marks: of(list + `token = '' AND name LIKE '_% %'` + inPages),
		unmark: of(unmark),
		idle:   of(`SELECT name FROM (SELECT name, expires, fence FROM TABLE_NAME WHERE name > $1 ORDER BY name LIMIT $3) AS page WHERE ` + idle),
		forget: of(`DELETE FROM TABLE_NAME WHERE ` + idlePage()),
	}
	switch d {
	case MySQL:
		s.queue = of(queue)
		s.take, s.renew, s.swapMark = of(mysqlTake), of(mysqlRenew), of(mysqlSwapMark)
		s.create = of(strings.Replace(create, "INSERT", "INSERT IGNORE", 1))
	case SQLite:
		s.swapMark, s.renewMany = of(sqliteSwapMark), of(sqliteRenewMany)
	default:
		s.take, s.renewMany, s.renewTogether = of(take), of(postgresRenewMany), of(postgresRenewTogether)
		s.claim = of(claim)
		s.end, s.complete = of(end+postgresHandOver), of(postgresMark(end, 5))
		s.takeMany, s.endMany = of(postgresTakeMany), of(postgresEndMany)
		s.create = of(create + ` ON CONFLICT (name) DO NOTHING RETURNING ''`)
		s.swap, s.swapMark = of(swap+` RETURNING ''`), of(postgresMark(swap, 14))
		s.queue = of(queue + ` RETURNING pg_catalog.concat(` + postgresSoon + `, CASE WHEN expires <= NOW THEN '` + postgresFree + `' ELSE '' END)`)
		s.renew = of(renew + ` RETURNING ''`)
		s.unmark = of(unmark + ` RETURNING ''`)
		s.forget = of(`DELETE FROM TABLE_NAME WHERE name IN (SELECT name FROM TABLE_NAME WHERE ` + idlePage() + ` FOR UPDATE SKIP LOCKED) RETURNING ''`)
	}
	return s
}

// A fence is about when its name was last taken or freed.
const idle = `expires < NOW - $2 AND fence < NOW - $2`

// idlePage is that a name is out of use, and one of pageSize names.
func idlePage() string {
	var names strings.Builder
	names.WriteString("$1")
	for i := 1; i < pageSize; i++ {
		names.WriteString(", $" + strconv.Itoa(i+2))
	}
	return "name IN (" + names.String() + ") AND " + idle
}

// The column fence is the last one of those reserved. A row with a state needs more than SQL can say
// briefly: see Store.change.
//
// PostgreSQL locks a row that it then leaves as it is, and that lock is a commit which waits for the disk. So whoever sees that
// somebody else has the name does not come so far.
const take = `INSERT INTO TABLE_NAME AS l (name, token, label, fence, expires, turn)
SELECT TXT($1), TXT($2), TXT($3), us + INT($5) - 1, us + INT($4), us * INT($6)
FROM (SELECT NOW AS us) AS clock
WHERE NOT EXISTS (SELECT FROM TABLE_NAME WHERE name = TXT($1) AND (state <> '' OR token <> TXT($2) AND expires > us))
ON CONFLICT (name) DO UPDATE SET token = excluded.token, label = excluded.label, expires = excluded.expires,
	fence = CASE WHEN l.fence + INT($5) > excluded.fence THEN l.fence + INT($5) ELSE excluded.fence END,
	turn = CASE WHEN l.fence + INT($5) > excluded.fence THEN (l.fence + 1) * INT($6) ELSE excluded.turn END
WHERE l.state = '' AND (l.token = excluded.token OR l.expires <= excluded.expires - INT($4))
RETURNING fence`

// The first of the queue takes a name whose state, and so its queue, is as this process has seen it last.
const claim = `UPDATE TABLE_NAME AS l SET token = $2, label = $3, fence = GREATEST(l.fence + 1, us) + INT($5) - 1, expires = us + INT($4),
	turn = GREATEST(l.fence + 1, us) * INT($6), head = $8, state = $9
FROM (SELECT NOW AS us) AS clock
WHERE l.name = $1 AND l.state = $7 AND l.expires <= us AND INT($10) > us RETURNING l.fence`

const end = `UPDATE TABLE_NAME SET token = TXT($3), label = CASE WHEN INT($4) > 0 THEN label ELSE '' END,
	expires = CASE WHEN INT($4) > 0 THEN NOW + INT($4) ELSE 0 END, turn = 0, fence = CASE WHEN fence < NOW THEN NOW ELSE fence END
WHERE name = $1 AND token = $2 AND expires > NOW`

const renew = `UPDATE TABLE_NAME SET expires = CASE WHEN INT($3) > 0 THEN NOW + INT($3) ELSE expires END
WHERE name = $1 AND token = $2 AND expires > NOW`

const (
	read = `SELECT clock.us, COALESCE(l.name, ''), COALESCE(l.token, ''), COALESCE(l.label, ''), COALESCE(l.fence, 0),
	COALESCE(l.expires, 0), COALESCE(l.turn, 0), COALESCE(l.state, ''), STANDBY
FROM (SELECT ASKED AS us) AS clock LEFT JOIN TABLE_NAME AS l ON l.name IN ($1, $2)`

	list = `SELECT ASKED, name, token, label, fence, expires, turn, state FROM TABLE_NAME
WHERE name >= $1 AND name <> $2 AND name < $3 AND expires > NOW AND `
	inPages = ` ORDER BY name LIMIT $4`
	unmark  = `DELETE FROM TABLE_NAME WHERE name = $1 AND token = '' AND expires > NOW`

	columns = `name, token, label, fence, expires, turn, head, state`
	create  = `INSERT INTO TABLE_NAME (` + columns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

	// All that others can have changed is compared. A row that is as it was read is the same: a fence
	// never comes back.
	asRead = `token = $9 AND fence = $10 AND expires = $11 AND state = $12 AND turn = $13`
	swap   = `UPDATE TABLE_NAME SET token = $2, label = $3, fence = $4, expires = $5, turn = $6, head = $7, state = $8
WHERE name = $1 AND ` + asRead

	queue = `UPDATE TABLE_NAME SET head = $2, state = $3 WHERE name = $1 AND state = $4 AND token <> $5`
)

const (
	// postgresSoon has a statement not wait for the disk. That is for what may be lost in a crash: a waiter's entry, which its
	// next look brings back, and a release that somebody waits for. The grant that follows does wait, and nothing is on the
	// disk before all that came earlier is.
	postgresSoon = `pg_catalog.set_config('synchronous_commit', 'off', true)`

	// postgresFree ends what is said of a name that nobody has.
	postgresFree = " free"

	// postgresNotify tells the first of the queue, in the statement that frees the name. PostgreSQL lets one transaction at a
	// time commit that notifies, in all of the database.
	postgresNotify = `pg_catalog.concat(` + postgresSoon + `,
	pg_catalog.pg_notify(pg_catalog.split_part(head, ' ', 1), pg_catalog.split_part(head, ' ', 2)))`
	postgresHandOver = ` RETURNING CASE WHEN head = '' OR INT($4) > 0 THEN '' ELSE ` + postgresNotify + ` END`
)

// postgresMark is an update that leaves a marker, whose name, label and window are the parameters from n on.
func postgresMark(update string, n int) string {
	return fmt.Sprintf(`WITH ended AS (%s RETURNING head), mark AS (
	INSERT INTO TABLE_NAME (name, token, label, fence, expires)
	SELECT TXT($%d), '', TXT($%d), 0, NOW + INT($%d) FROM ended
	ON CONFLICT (name) DO UPDATE SET label = excluded.label, expires = excluded.expires
)
SELECT head FROM ended`, update, n, n+1, n+2)
}

// The marker and the end of the grant are two rows of one insertion, made only if the row is as read.
const sqliteSwapMark = `INSERT INTO TABLE_NAME (` + columns + `)
SELECT v.* FROM TABLE_NAME AS l, (
	SELECT $1 AS name, $2 AS token, $3 AS label, $4 AS fence, $5 AS expires, $6 AS turn, $7 AS head, $8 AS state
	UNION ALL SELECT $14, '', $15, 0, NOW + $16, 0, '', '') AS v
WHERE l.name = $1 AND l.token = $9 AND l.fence = $10 AND l.expires = $11 AND l.state = $12 AND l.turn = $13
ON CONFLICT (name) DO UPDATE SET token = excluded.token, label = excluded.label, fence = excluded.fence, expires = excluded.expires,
	turn = excluded.turn, head = excluded.head, state = excluded.state`

// A row that somebody else has locked costs the other ones no time: Renew asks for it again.
const postgresRenewMany = `WITH c AS (
	SELECT * FROM pg_catalog.json_to_recordset(CAST($1 AS JSON)) AS c (name TEXT, token TEXT, ttl BIGINT)
), mine AS (
	SELECT l.name, c.ttl FROM TABLE_NAME AS l JOIN c ON l.name = c.name AND l.token = c.token
	WHERE l.expires > NOW FOR UPDATE OF l SKIP LOCKED
)
UPDATE TABLE_NAME AS l SET expires = CASE WHEN m.ttl > 0 THEN NOW + m.ttl ELSE l.expires END
FROM mine AS m WHERE l.name = m.name RETURNING l.name, l.token`

// The holders of each row are written anew. Those whose time is over are left out, as Store.change does.
const postgresRenewTogether = `WITH c AS (
	SELECT * FROM pg_catalog.json_to_recordset(CAST($1 AS JSON)) AS c (name TEXT, token TEXT, ttl BIGINT)
), mine AS (
	SELECT l.name, CAST(l.state AS JSONB) AS state, NOW AS us FROM TABLE_NAME AS l
	WHERE l.name IN (SELECT name FROM c) AND l.token IN ('` + byReaders + `', '` + byPermits + `') AND l.expires > NOW FOR UPDATE OF l SKIP LOCKED
), holders AS (
	SELECT m.name, h.n, c.token, CASE WHEN c.ttl > 0 THEN m.us + c.ttl ELSE CAST(h.holder OPERATOR(pg_catalog.->>) 'e' AS BIGINT) END AS ends, h.holder
	FROM mine AS m CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(m.state OPERATOR(pg_catalog.->) 'h') WITH ORDINALITY AS h (holder, n)
	LEFT JOIN c ON c.name = m.name AND c.token = h.holder OPERATOR(pg_catalog.->>) 't'
	WHERE CAST(h.holder OPERATOR(pg_catalog.->>) 'e' AS BIGINT) > m.us
), written AS (
	UPDATE TABLE_NAME AS l SET expires = h.expires, state = CAST(pg_catalog.jsonb_set(m.state, '{h}', h.held) AS TEXT)
	FROM mine AS m JOIN (
		SELECT name, pg_catalog.max(ends) AS expires, pg_catalog.jsonb_agg(pg_catalog.jsonb_set(holder, '{e}', pg_catalog.to_jsonb(ends)) ORDER BY n) AS held, pg_catalog.bool_or(token IS NOT NULL) AS ours
		FROM holders GROUP BY name) AS h ON h.name = m.name
	WHERE l.name = m.name AND h.ours RETURNING l.name
)
SELECT h.name, h.token FROM holders AS h JOIN written AS w ON w.name = h.name WHERE h.token IS NOT NULL`

const sqliteRenewMany = `UPDATE TABLE_NAME AS l SET expires = CASE WHEN c.ttl > 0 THEN NOW + c.ttl ELSE l.expires END
FROM (
	SELECT json_extract(value, '$.name') AS name, json_extract(value, '$.token') AS token, json_extract(value, '$.ttl') AS ttl
	FROM json_each($1)) AS c
WHERE l.name = c.name AND l.token = c.token AND l.expires > NOW RETURNING name, token`

// MySQL has no RETURNING. What LAST_INSERT_ID was given last comes back with the answer to
// the statement itself: the fence of a grant, and 0 for a refusal. Assignments are made from
// left to right, and see what those before them have made; or all at once, with MariaDB's sql_mode
// SIMULTANEOUS_ASSIGNMENT, which ORACLE has. In this order the condition comes to the same in both.
const mysqlTake = `INSERT INTO TABLE_NAME (name, token, label, fence, expires, turn)
VALUES ($1, $2, $3, LAST_INSERT_ID(NOW + $5 - 1), NOW + $4, NOW * $6)
ON DUPLICATE KEY UPDATE
	turn = IF(state = '' AND (token = VALUES(token) OR expires <= NOW), GREATEST(fence + 1, NOW) * $6, turn),
	fence = IF(state = '' AND (token = VALUES(token) OR expires <= NOW), LAST_INSERT_ID(GREATEST(fence + $5, NOW + $5 - 1)), fence + LAST_INSERT_ID(0)),
	label = IF(state = '' AND (token = VALUES(token) OR expires <= NOW), VALUES(label), label),
	token = IF(state = '' AND (token = VALUES(token) OR expires <= NOW), VALUES(token), token),
	expires = IF(state = '' AND (token = VALUES(token) OR expires <= NOW), VALUES(expires), expires)`

// A row that a renewal leaves as it was is not counted as affected: LAST_INSERT_ID tells.
const mysqlRenew = `UPDATE TABLE_NAME SET expires = IF($3 > 0, NOW + $3, expires) + LAST_INSERT_ID(1) - 1
WHERE name = $1 AND token = $2 AND expires > NOW`

// The marker comes first: who reads at READ UNCOMMITTED must not see a free name without it. MariaDB takes the spaces off the end
// of a text parameter in a UNION, and not of a binary one.
const mysqlSwapMark = `INSERT INTO TABLE_NAME (` + columns + `)
SELECT v.* FROM TABLE_NAME AS l, (
	SELECT CAST($14 AS BINARY) AS name, CAST('' AS BINARY) AS token, CAST($15 AS BINARY) AS label, 0 AS fence,
		NOW + $16 AS expires, 0 AS turn, CAST('' AS BINARY) AS head, CAST('' AS BINARY) AS state
	UNION ALL SELECT CAST($1 AS BINARY), CAST($2 AS BINARY), CAST($3 AS BINARY), CAST($4 AS SIGNED), CAST($5 AS SIGNED), CAST($6 AS SIGNED),
		CAST($7 AS BINARY), CAST($8 AS BINARY)) AS v
WHERE l.name = $1 AND l.token = $9 AND l.fence = $10 AND l.expires = $11 AND l.state = $12 AND l.turn = $13 FOR UPDATE
ON DUPLICATE KEY UPDATE token = VALUES(token), label = VALUES(label), fence = VALUES(fence), expires = VALUES(expires),
	turn = VALUES(turn), head = VALUES(head), state = VALUES(state)`
