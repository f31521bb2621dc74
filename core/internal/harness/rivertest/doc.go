// Package rivertest has the tests of rivermw that need River and a database.
package rivertest
