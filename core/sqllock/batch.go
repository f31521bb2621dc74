package sqllock

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/share"
)

// batched is how a claim travels in a shared statement. I is where it stands there.
type batched struct {
	I     int    `json:"i"`
	Name  string `json:"name"`
	Token string `json:"token"`
	Label string `json:"label"` // of an acquire
	TTL   int64  `json:"ttl"`
	N     int64  `json:"n"` // fences
}

func batchOf(c driver.Claim) batched {
	return batched{Name: c.Name, Token: c.Token, Label: c.Label, TTL: c.TTL.Microseconds(), N: fencesOf(c, false)}
}

// flights is how many statements so many claims share: from six on one, since a statement costs the server about as much as ten
// more claims in it do.
func flights(claims int, _ time.Duration) int {
	if claims < 6 {
		return 4
	}
	return 1
}

// number is what a statement says to a claim: none if it does not find what it is about.
type number struct {
	n     int64
	found bool
}

type part = share.Part[driver.Claim, number]

// together returns a share whose claims are decided by one kind of statement, which answers with where
// they stand and a number. It answers only what it can without waiting for a row. Without such a statement everything
// goes by itself.
func (s *Store) together(stmt statement, alone func(context.Context, driver.Claim) (number, error)) func(context.Context, driver.Claim) (number, error) {
	if stmt.text == "" {
		return alone
	}
	all := &share.Share[driver.Claim, number]{
		Alone:   alone,
		Send:    func(ctx context.Context, batch []*part) { s.sendTogether(ctx, stmt, batch) },
		Apart:   func(a, b driver.Claim) bool { return a.Name == b.Name }, // a statement changes a row once
		Flights: flights,
	}
	return all.Do
}

func (s *Store) sendTogether(ctx context.Context, stmt statement, batch []*part) {
	claims := make([]batched, len(batch))
	for i, p := range batch {
		claims[i] = batchOf(p.Command)
		claims[i].I = i
	}
	text, _ := json.Marshal(claims) //nolint:errchkjson // it has strings and numbers only
	var i int
	var n int64
	forget := func() {
		for _, p := range batch {
			p.Answer, p.Said = number{}, false
		}
	}
	_, err := s.once(ctx, stmt, []any{string(text)}, answer{
		begin: forget,
		row:   func() { batch[i].Answer, batch[i].Said = number{n, true}, true },
		dest:  []any{&i, &n},
	})
	if err == nil {
		return
	}
	forget() // what a broken answer has begun to say counts for nothing
	for _, p := range batch {
		if !undone(err) { // otherwise each finds out why by itself
			p.Err = err
		}
	}
}

// A row that somebody else has locked costs the other claims no time, and two statements never wait for each
// other: rows are skipped, and new ones come in order.
const (
	postgresTakeMany = `WITH c AS (
	SELECT c.*, us FROM pg_catalog.json_to_recordset(CAST($1 AS JSON)) AS c (i INT, name TEXT, token TEXT, label TEXT, ttl BIGINT, n BIGINT),
		(SELECT NOW AS us) AS clock
), mine AS (
	SELECT c.*, GREATEST(l.fence + 1, us) AS first FROM c JOIN TABLE_NAME AS l ON l.name = c.name
	WHERE l.state = '' AND (l.token = c.token OR l.expires <= us) FOR UPDATE OF l SKIP LOCKED
), taken AS (
	UPDATE TABLE_NAME AS l SET token = m.token, label = m.label, expires = us + m.ttl, fence = first + n - 1,
		turn = CASE WHEN n = 1 THEN first ELSE -first END
	FROM mine AS m WHERE l.name = m.name RETURNING m.i, l.fence
), made AS (
	INSERT INTO TABLE_NAME (name, token, label, fence, expires, turn)
	SELECT name, token, label, us + n - 1, us + ttl, CASE WHEN n = 1 THEN us ELSE -us END FROM c
	WHERE NOT EXISTS (SELECT FROM TABLE_NAME AS l WHERE l.name = c.name) ORDER BY name
	ON CONFLICT (name) DO NOTHING RETURNING name, fence
)
SELECT i, fence FROM taken UNION ALL SELECT c.i, made.fence FROM made JOIN c ON made.name = c.name`

	postgresEndMany = `WITH c AS (
	SELECT * FROM pg_catalog.json_to_recordset(CAST($1 AS JSON)) AS c (i INT, name TEXT, token TEXT)
), mine AS (
	SELECT c.* FROM c JOIN TABLE_NAME AS l ON l.name = c.name AND l.token = c.token
	WHERE l.expires > NOW FOR UPDATE OF l SKIP LOCKED
)
UPDATE TABLE_NAME AS l SET token = '', label = '', expires = 0, turn = 0, fence = GREATEST(l.fence, NOW)
FROM mine AS m WHERE l.name = m.name
RETURNING m.i, CASE WHEN l.head = '' THEN 1 ELSE pg_catalog.length(` + postgresNotify + `) END`
)
