// Package fencetest proves package fence against real databases: PostgreSQL, MariaDB and SQLite.
package fencetest
