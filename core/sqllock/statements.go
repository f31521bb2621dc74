package sqllock

// statements are all that a Store sends. Each is one transaction by itself, so no connection
// is kept from one to the next, and nobody who stops in between keeps a row locked.
//
// Each of them may have to wait for a row. What it took for the time is then a little in the
// past: a lease that it sets ends earlier, and one that has ended since is not seen as over.
// Nobody can have prolonged or taken it without having had the row.
type statements struct {
	take      statement // name, token, label, TTL, number of fences; see Store.take
	look      statement // name, marker: what of them is not over
	free      statement // name, token
	complete  statement // name, token, marker, label, window
	renew     statement // name, token, TTL; see Store.renew
	renewMany statement // JSON of many; without text where there is none
	page      statement // the names after this one, how long is out of use, how many
	forget    statement // name, how long is out of use
}

func (d Dialect) statements(table string) statements {
	of := func(template string) statement { return d.statement(template, table) }
	s := statements{
		look:   of(`SELECT name, label, expires - NOW FROM TABLE_NAME WHERE name IN ($1, $2) AND expires > NOW`),
		free:   of(`UPDATE TABLE_NAME SET token = '', label = '', expires = 0 WHERE name = $1 AND token = $2 AND expires > NOW`),
		page:   of(`SELECT name, CASE WHEN ` + idle + ` THEN 1 ELSE 0 END FROM TABLE_NAME WHERE name > $1 ORDER BY name LIMIT $3`),
		forget: of(`DELETE FROM TABLE_NAME WHERE name = $1 AND ` + idle),
	}
	switch d {
	case MySQL:
		s.take, s.complete, s.renew = of(mysqlTake), of(mysqlComplete), of(mysqlRenew)
	case SQLite:
		s.take, s.complete, s.renew = of(take), of(sqliteComplete), of(renew)
		s.renewMany = of(sqliteRenewMany)
	default:
		s.take, s.complete, s.renew = of(take), of(postgresComplete), of(renew)
		s.renewMany = of(postgresRenewMany)
	}
	return s
}

// A fence is about when its name was last taken.
const idle = `expires < NOW - $2 AND fence < NOW - $2`

// The column fence is the last one of those reserved.
const take = `INSERT INTO TABLE_NAME AS l (name, token, label, fence, expires)
SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), us + CAST($5 AS BIGINT) - 1, us + CAST($4 AS BIGINT)
FROM (SELECT NOW AS us) AS clock WHERE true
ON CONFLICT (name) DO UPDATE SET token = excluded.token, label = excluded.label, expires = excluded.expires,
	fence = CASE WHEN l.fence + CAST($5 AS BIGINT) > excluded.fence THEN l.fence + CAST($5 AS BIGINT) ELSE excluded.fence END
WHERE l.token = excluded.token OR l.expires <= excluded.expires - CAST($4 AS BIGINT)
RETURNING fence`

const renew = `UPDATE TABLE_NAME SET expires = CASE WHEN CAST($3 AS BIGINT) > 0 THEN NOW + CAST($3 AS BIGINT) ELSE expires END
WHERE name = $1 AND token = $2 AND expires > NOW`

// The marker and the end of the tenure are two rows of one insertion, made only for the owner.
const (
	sqliteComplete = insertMark + ` FROM TABLE_NAME AS l, (` + mark + `) AS v
WHERE l.name = $1 AND l.token = $2 AND l.expires > NOW` + onConflictMark

	// FOR UPDATE looks at the row as it is, and not as it was when the statement began. It comes
	// first: a row that the statement itself has changed is none that it could lock.
	postgresComplete = `WITH l AS (
	SELECT name FROM TABLE_NAME WHERE name = $1 AND token = $2 AND expires > NOW FOR UPDATE
)
` + insertMark + ` FROM l, (` + mark + `) AS v` + onConflictMark

	insertMark = `INSERT INTO TABLE_NAME (name, token, label, fence, expires)
SELECT v.name, '', v.label, 0, v.expires`

	mark = `
	SELECT CAST($1 AS TEXT) AS name, '' AS label, 0 AS expires
	UNION ALL SELECT CAST($3 AS TEXT), CAST($4 AS TEXT), NOW + CAST($5 AS BIGINT)`

	onConflictMark = `
ON CONFLICT (name) DO UPDATE SET token = '', label = excluded.label, expires = excluded.expires`
)

// A row that somebody else has locked costs the other ones no time: Renew asks for it again.
const postgresRenewMany = `WITH c AS (
	SELECT * FROM json_to_recordset(CAST($1 AS JSON)) AS c (name TEXT, token TEXT, ttl BIGINT)
), mine AS (
	SELECT l.name, c.ttl FROM TABLE_NAME AS l JOIN c ON l.name = c.name AND l.token = c.token
	WHERE l.expires > NOW FOR UPDATE OF l SKIP LOCKED
)
UPDATE TABLE_NAME AS l SET expires = CASE WHEN m.ttl > 0 THEN NOW + m.ttl ELSE l.expires END
FROM mine AS m WHERE l.name = m.name RETURNING l.name, l.token`

const sqliteRenewMany = `UPDATE TABLE_NAME AS l SET expires = CASE WHEN c.ttl > 0 THEN NOW + c.ttl ELSE l.expires END
FROM (
	SELECT json_extract(value, '$.name') AS name, json_extract(value, '$.token') AS token, json_extract(value, '$.ttl') AS ttl
	FROM json_each($1)) AS c
WHERE l.name = c.name AND l.token = c.token AND l.expires > NOW RETURNING name, token`

// MySQL has no RETURNING. What LAST_INSERT_ID was given last comes back with the answer to
// the statement itself: the fence of a grant, and 0 for a refusal. Assignments are made from
// left to right, and see what those before them have made.
const mysqlTake = `INSERT INTO TABLE_NAME (name, token, label, fence, expires)
VALUES ($1, $2, $3, LAST_INSERT_ID(NOW + $5 - 1), NOW + $4)
ON DUPLICATE KEY UPDATE
	fence = IF(token = VALUES(token) OR expires <= NOW, LAST_INSERT_ID(GREATEST(fence + $5, NOW + $5 - 1)), fence + LAST_INSERT_ID(0)),
	label = IF(token = VALUES(token) OR expires <= NOW, VALUES(label), label),
	token = IF(token = VALUES(token) OR expires <= NOW, VALUES(token), token),
	expires = IF(token = VALUES(token), VALUES(expires), expires)`

// A row that a renewal leaves as it was is not counted as affected: LAST_INSERT_ID tells.
const mysqlRenew = `UPDATE TABLE_NAME SET expires = IF($3 > 0, NOW + $3, expires) + LAST_INSERT_ID(1) - 1
WHERE name = $1 AND token = $2 AND expires > NOW`

// MariaDB takes the spaces off the end of a text parameter in a UNION, and not of a binary one.
const mysqlComplete = `INSERT INTO TABLE_NAME (name, token, label, fence, expires)
SELECT v.name, '', v.label, 0, v.expires
FROM TABLE_NAME AS l, (
	SELECT CAST($1 AS BINARY) AS name, CAST('' AS BINARY) AS label, 0 AS expires
	UNION ALL SELECT CAST($3 AS BINARY), CAST($4 AS BINARY), NOW + $5) AS v
WHERE l.name = $1 AND l.token = $2 AND l.expires > NOW FOR UPDATE
ON DUPLICATE KEY UPDATE token = '', label = VALUES(label), expires = VALUES(expires)`
