// Package sqltest tests package sqlstore on real databases. It is a module of its own, because of their
// drivers.
package sqltest
