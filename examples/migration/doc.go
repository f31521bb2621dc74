// Package migration proves what docs/comparison.md says: Holdfast beside the locks it takes the
// place of, on the same keys of a real Redis. Like all examples it is in a module that is not
// released, so that no user of Holdfast inherits these locks.
package migration
