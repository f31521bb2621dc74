package sqllock

import (
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core/driver"
)

// classify marks the errors after which the database has certainly not executed anything.
// Those that it does not know are unknown outcomes.
func (d Dialect) classify(err error) error {
	if err == nil {
		return nil
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return driver.NotSent(err)
	}
	switch d {
	case MySQL:
		if n := mysqlNumber(err); n == mysqlDeadlock || n == mariaChanged {
			return driver.NotSent(&rolledBack{err})
		}
	case SQLite:
		if isBusy(err) { // the statement is rolled back
			return driver.NotSent(err)
		}
	default:
		switch state := sqlState(err); {
		case state == pgSerialization || state == pgDeadlock:
			return driver.NotSent(&rolledBack{err})
		case slices.ContainsFunc(absent, func(begins string) bool { return strings.HasPrefix(state, begins) }):
			return driver.Unavailable(err)
		}
	}
	return d.explain(err)
}

const (
	pgSerialization = "40001" // serialization_failure
	pgDeadlock      = "40P01" // deadlock_detected
	mysqlDeadlock   = 1213    // ER_LOCK_DEADLOCK
	mariaChanged    = 1020    // ER_CHECKREAD, with innodb_snapshot_isolation
	sqliteBusy      = 5       // SQLITE_BUSY, in the lowest byte

	sqliteLocked = "database is locked" // its text, for drivers that have no code
)

// sqlState is the state in an error of pgx or lib/pq.
func sqlState(err error) string {
	if pg, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok {
		return pg.SQLState()
	}
	return ""
}

// undone says of an error of PostgreSQL that it has rolled the statement back.
func undone(err error) bool {
	state := sqlState(err)
	return state != "" && !slices.ContainsFunc(doubtful, func(class string) bool { return strings.HasPrefix(state, class) })
}

// doubtful are the states with which a connection ends: the commit can have been before that, or have been waiting for a
// standby. 08 is what a pooler says when its connection to the server breaks; 58 and XX are faults of the server and its disk.
var doubtful = []string{"08", "57P", "58", "XX", "40003"}

// absent are those of a server that stops, has crashed or starts, and of a pooler that cannot reach it.
var absent = []string{"08", "57P01", "57P02", "57P03"}

// isBusy says whether SQLite has done nothing, because others write.
func isBusy(err error) bool {
	return sqliteCode(err)&0xff == sqliteBusy || err != nil && strings.Contains(err.Error(), sqliteLocked)
}

// sqliteCode is the code in an error of modernc.org/sqlite.
func sqliteCode(err error) int {
	if lite, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		return lite.Code()
	}
	return 0
}

// mysqlNumber finds the number in an error of go-sql-driver/mysql, which has it in a field
// only; 0 if there is none.
func mysqlNumber(err error) uint64 {
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.Indirect(reflect.ValueOf(err))
		if v.Kind() != reflect.Struct {
			continue
		}
		if n := v.FieldByName("Number"); n.IsValid() && n.CanUint() {
			return n.Uint()
		}
	}
	return 0
}

// rolledBack says that the database has undone a statement because of others: it may be sent again.
type rolledBack struct{ error }

func (e *rolledBack) Unwrap() error { return e.error }
