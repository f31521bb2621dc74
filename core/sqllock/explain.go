package sqllock

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/core/driver"
)

// fault is why a database has executed nothing, and what to do about it.
type fault struct {
	why  string
	mark func(error) error
}

// The faults. Those of a disk and of a server that takes no writes can pass by themselves.
var (
	readOnly     = &fault{"the server takes no writes: it is a standby, or set to read only; connect to the primary", driver.Unavailable}
	diskFull     = &fault{"the database's disk is full", passing}
	noTable      = &fault{"there is no table of locks; run the statement of sqllock.Schema", driver.Refused}
	noColumn     = &fault{"the table of locks lacks a column; make it with the statement of sqllock.Schema", driver.Refused}
	noPermission = &fault{"the database user needs SELECT, INSERT, UPDATE and DELETE on the table of locks", driver.Refused}
	noEntry      = &fault{"the server does not let the database user in, or has no such database: check user, password, database and TLS of the data source", driver.Refused}
	noTLS        = &fault{"the data source asks for TLS, and the server has none: turn it on there, or off here", driver.Refused}
	noDatabase   = &fault{"what answers at this address is not the database that the driver is for: check host and port", driver.Refused}
	otherDialect = &fault{"sqllock.New got the dialect of another database than this one", driver.Refused}
	crowded      = &fault{"the server has as many connections as it takes: raise its limit, or lower SetMaxOpenConns of the programs", passing}
	pooled       = &fault{"a pooler has given the connection to others, who do not know its prepared statements; with pgx, set default_query_exec_mode=exec", passing}
)

func passing(err error) error { return err }

// explain adds to an error of the server what to do about it.
func (d Dialect) explain(err error) error {
	f := d.fault(err)
	if f == nil {
		return err
	}
	return f.of(err)
}

func (f *fault) of(err error) error {
	return driver.Because(driver.NotSent(f.mark(fmt.Errorf("sqllock: %s: %w", f.why, err))), f.why)
}

func (d Dialect) fault(err error) *fault {
	if d.foreign(err) {
		return otherDialect
	}
	switch d {
	case MySQL:
		if strings.Contains(err.Error(), "TLS requested but server does not support TLS") {
			return noTLS
		}
		return mysqlFaults[mysqlNumber(err)]
	case SQLite:
		if f := sqliteFaults[sqliteCode(err)&0xff]; f != nil {
			return f
		}
		switch text := err.Error(); {
		case strings.Contains(text, "no such table"):
			return noTable
		case strings.Contains(text, "no such column"), strings.Contains(text, "has no column named"):
			return noColumn
		}
		return nil
	default:
		if f := postgresFaults[sqlState(err)]; f != nil {
			return f
		}
		return unconnected(err)
	}
}

// foreign says whether the error is that of another database.
func (d Dialect) foreign(err error) bool {
	isPostgres, isMySQL := sqlState(err) != "", mysqlNumber(err) != 0
	return isPostgres && d != Postgres || isMySQL && d != MySQL
}

// unconnected finds out from pgx's text why there is no connection: what answers need not be a PostgreSQL.
func unconnected(err error) *fault {
	text := err.Error()
	switch {
	case !strings.Contains(text, "failed to connect to "):
		return nil
	case strings.Contains(text, "server refused TLS connection"):
		return noTLS
	case strings.Contains(text, "invalid body length"), strings.Contains(text, "received unexpected message"):
		return noDatabase
	}
	return nil
}

var postgresFaults = map[string]*fault{
	"25006": readOnly,     // read_only_sql_transaction
	"53100": diskFull,     // disk_full
	"42P01": noTable,      // undefined_table
	"42703": noColumn,     // undefined_column
	"42501": noPermission, // insufficient_privilege
	"53300": crowded,      // too_many_connections
	"28000": noEntry,      // invalid_authorization_specification
	"28P01": noEntry,      // invalid_password
	"3D000": noEntry,      // invalid_catalog_name
	"26000": pooled,       // invalid_sql_statement_name
	"42P05": pooled,       // duplicate_prepared_statement
}

var mysqlFaults = map[uint64]*fault{
	1290: readOnly,     // ER_OPTION_PREVENTS_STATEMENT
	1836: readOnly,     // ER_READ_ONLY_MODE
	1021: diskFull,     // ER_DISK_FULL
	1114: diskFull,     // ER_RECORD_FILE_FULL
	1146: noTable,      // ER_NO_SUCH_TABLE
	1054: noColumn,     // ER_BAD_FIELD_ERROR
	1142: noPermission, // ER_TABLEACCESS_DENIED_ERROR
	1143: noPermission, // ER_COLUMNACCESS_DENIED_ERROR
	1040: crowded,      // ER_CON_COUNT_ERROR
	1203: crowded,      // ER_TOO_MANY_USER_CONNECTIONS
	1044: noEntry,      // ER_DBACCESS_DENIED_ERROR
	1045: noEntry,      // ER_ACCESS_DENIED_ERROR
	1049: noEntry,      // ER_BAD_DB_ERROR
}

var sqliteFaults = map[int]*fault{
	8:  readOnly, // SQLITE_READONLY
	13: diskFull, // SQLITE_FULL
}

const (
	pgDataException = "22"    // begins all of this class
	pgTooMuch       = "54000" // program_limit_exceeded: the queue of notifications is full
)
