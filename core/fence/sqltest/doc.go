// Package sqltest proves package fence against real databases: PostgreSQL, MariaDB and SQLite.
// It is a module of its own, so that nobody inherits three database drivers.
package sqltest
