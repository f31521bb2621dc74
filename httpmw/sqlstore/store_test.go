package sqlstore_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw/sqlstore"
)

func TestAStoreThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	db := new(sql.DB)
	for what, err := range map[string]error{
		"no database": second(sqlstore.New(nil, sqlstore.Postgres, "")),
		"no dialect":  second(sqlstore.New(db, 0, "")),
		"no name":     second(sqlstore.New(db, sqlstore.MySQL, "answers; DROP TABLE orders")),
		"none":        second(sqlstore.New(db, sqlstore.SQLite, "shop.answers")),
	} {
		if errors.Is(err, core.ErrInvalid) != (what != "none") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
