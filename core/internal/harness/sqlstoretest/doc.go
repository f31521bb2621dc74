// Package sqlstoretest tests package sqlstore on real databases.
package sqlstoretest
