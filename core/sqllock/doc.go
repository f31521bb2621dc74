// Package sqllock is the backend in an SQL database.
package sqllock
