// Package sqltest proves packages fence and sqlstore against real databases: PostgreSQL, MariaDB and SQLite.
package sqltest
